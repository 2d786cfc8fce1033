"""Settings that all tests share."""

from hypothesis import HealthCheck, settings

# A machine that is busy with other work must not fail a property: no deadline, and no complaint
# that drawing was slow.
settings.register_profile(
    "midstream", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("midstream")
