"""What holds for every source file: length, docstrings, no way to run code from data, no seeded noise."""

from __future__ import annotations

import ast
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "discreet").rglob("*.py"))
LONGEST, LONG = 450, 350
DESERIALISERS = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "imp"}
RUNNERS = {"eval", "exec", "compile", "__import__"}


def test_no_module_is_too_long() -> None:
    """A module that outgrows 450 lines has two reasons to change; those above 350 are listed as a warning."""
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in SOURCES}
    assert len(lengths) > 10, "no sources found: the checks of this file would pass on nothing"
    for name, lines in lengths.items():
        if lines > LONG:
            warnings.warn(f"{name} has {lines} lines; {LONG} is the aim", stacklevel=1)
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_everything_public_has_a_docstring() -> None:
    """Modules, public classes, functions and methods say what they are in a sentence."""
    assert offences(undocumented, SOURCES) == {}


def test_data_never_becomes_code() -> None:
    """No pickle and its kin, no eval, exec or compile: a release file must not be able to run anything."""
    assert offences(code_runners, SOURCES) == {}


def test_privacy_noise_cannot_be_seeded() -> None:
    """The core, and the papers' own queries, touch no seedable generator: neither `random` nor `numpy.random`."""
    for room in ("core", "papers"):
        modules = [path for path in SOURCES if room in path.relative_to(ROOT).parts]
        assert len(modules) > 8, f"the room {room} is gone: this check would pass on nothing"
        assert offences(seedable_generators, modules) == {}


def test_the_checks_can_fail() -> None:
    """Each check above rejects a planted offence."""
    offence = (
        '"""Module."""\nimport pickle\nimport random\nimport numpy as np\n\n'
        'class Open:\n    """Class."""\n    def verb(self):\n        return eval("1")\n\n'
        "def draw(path):\n    return np.random.default_rng(1), np.load(path, allow_pickle=True)\n\n"
        "def _hidden():\n    def inner(): ...\n"
    )
    assert undocumented(offence) == ["Open.verb", "draw"]
    assert code_runners(offence) == ["pickle", "eval", "allow_pickle"]
    assert seedable_generators(offence) == ["random", "np.random"]
    assert undocumented("x = 1\n") == ["module"]


def offences(find: Callable[[str], list[str]], paths: list[Path]) -> dict[str, list[str]]:
    """What a check finds, by file; files without a finding are left out."""
    found = {str(path.relative_to(ROOT)): find(path.read_text("utf-8")) for path in paths}
    return {name: hits for name, hits in found.items() if hits}


def undocumented(source: str) -> list[str]:
    """The public names without a docstring; a method needs none if a class of the same module explains it."""
    tree = ast.parse(source)
    found = [] if ast.get_docstring(tree) or not tree.body else ["module"]
    definitions = list(public_definitions(tree))
    explained = {
        member.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for member in node.body
        if isinstance(member, ast.FunctionDef) and ast.get_docstring(member)
    }
    return found + [
        name
        for name, node in definitions
        if not ast.get_docstring(node) and not ("." in name and node.name in explained)
    ]


def public_definitions(
    parent: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every public class, function and method, with its dotted name; overloads and setters speak for none."""
    for node in parent.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
        silent = {"overload", "typing.overload", f"{node.name}.setter"} & decorators
        if node.name.startswith("_") or silent:
            continue
        yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from public_definitions(node, f"{prefix}{node.name}.")


def code_runners(source: str) -> list[str]:
    """Imports that deserialise objects and calls that run text, in the order of the nodes."""
    found = []
    for node in ast.walk(ast.parse(source)):
        found += [name for name in imported(node) if name in DESERIALISERS]
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in RUNNERS:
                found.append(node.func.id)
            found += [
                keyword.arg
                for keyword in node.keywords
                if keyword.arg == "allow_pickle" and truthy(keyword.value)
            ]
    return sorted(found, key=lambda name: (name not in DESERIALISERS, name not in RUNNERS))


def seedable_generators(source: str) -> list[str]:
    """Every use of `random` or `numpy.random`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        found += [name for name in imported(node) if name == "random"]
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numpy.random"):
            found.append("numpy.random")
        if isinstance(node, ast.Attribute) and node.attr == "random" and isinstance(node.value, ast.Name):
            found.append(f"{node.value.id}.random")
    return found


def imported(node: ast.AST) -> list[str]:
    """The top-level packages that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.partition(".")[0]]
    return []


def truthy(node: ast.expr) -> bool:
    """Whether an argument is anything but the literal False."""
    return not (isinstance(node, ast.Constant) and node.value is False)


def test_the_image_is_built_from_the_wheels_alone() -> None:
    """The Dockerfile takes what `make wheels` collects, fetches nothing, and has a Python that the package allows."""
    image, recipe = ((ROOT / name).read_text("utf-8") for name in ("Dockerfile", "Makefile"))
    source = re.search(r"source=(\S+),target=/wheels", image)
    assert source is not None and f"-d {source[1]} " in recipe
    steps = [line for line in image.splitlines() if line.startswith("RUN")]
    assert all("--no-index --no-deps" in step for step in steps if "pip install" in step)
    assert not re.search(r"\b(curl|wget|apt-get|git clone|ADD)\b", image)
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    default = re.search(r"ARG PYTHON=(\d+)\.(\d+)", image)
    assert default is not None and wanted == ">=3.11" and tuple(map(int, default.groups())) >= (3, 11)
