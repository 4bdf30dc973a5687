"""How a schema is written: as TOML for people, as JSON inside documents."""
