"""The trusted core: the airlock, the queries it answers, mechanisms, noise, scores and the rules of the ledger."""
