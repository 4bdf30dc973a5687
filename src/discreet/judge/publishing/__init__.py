"""What a release says of itself to catalogues and registries, to last year's release, and beside its neighbours."""
