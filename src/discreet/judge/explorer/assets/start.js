// The beginning: a page that cannot be read says so instead of staying empty.

try {
  const app = new App(readContents(document.getElementById("contents")));
  document.documentElement.classList.add("ready");
  // For the console, and for tests: the page's own parts.
  window.discreet = {
    app,
    findPaths: (from, to, weights) => findPaths(app.network, from, to, judgeEvidence(app.network, weights)),
  };
} catch (error) {
  const problem = document.getElementById("problem");
  problem.textContent = `This file cannot be shown: ${error.message}. Ask whoever sent it for a new copy, or make one with “discreet explore”.`;
  problem.hidden = false;
  document.getElementById("app").hidden = true;
}
