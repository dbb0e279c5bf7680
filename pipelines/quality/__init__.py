"""Quality profiles: published rules that keep a text or say why not."""

from pipelines.quality.profile import Profile as Profile
from pipelines.quality.profile import Rule as Rule
from pipelines.quality.profile import Threshold as Threshold
from pipelines.quality.quality import Judgement as Judgement
from pipelines.quality.quality import Quality as Quality
