from django.apps import AppConfig


class StimuliConfig(AppConfig):
    name = "stimuli"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "stimuli"
