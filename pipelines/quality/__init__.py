"""Quality profiles: published rules that keep a text or give a reason to drop it.

A custom profile can import everything that it needs from this package.
"""

from shards.commands.extras import missing_extras_explained

with missing_extras_explained():
    from pipelines.quality.batch import MeasuredText as MeasuredText
    from pipelines.quality.profile import NAN as NAN
    from pipelines.quality.profile import Bounds as Bounds
    from pipelines.quality.profile import Profile as Profile
    from pipelines.quality.profile import Rule as Rule
    from pipelines.quality.profile import Threshold as Threshold
    from pipelines.quality.quality import QualityResult as QualityResult
    from pipelines.quality.quality import QualityRules as QualityRules
    from pipelines.quality.words import SPACES as SPACES
