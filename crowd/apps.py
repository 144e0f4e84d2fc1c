from django.apps import AppConfig
from django.contrib.admin import apps
from django.contrib.admin.sites import AdminSite
from django.http import HttpRequest


class CrowdConfig(AppConfig):
    name = "crowd"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from crowd import celery, checks  # noqa: F401
        from crowd.ground.server_error_records import keep_failures
        from crowd.joining.unlisted_arrival_quota import check_room
        from experiments.sessions import unverified_places

        keep_failures()
        if check_room not in unverified_places.CHECKS:
            unverified_places.CHECKS.append(check_room)


class AdministratorsConfig(apps.AdminConfig):
    default = False
    default_site = "crowd.apps.Administrators"


class Administrators(AdminSite):
    """Django's admin, for superusers alone: its permissions are of all studies at once, so a login that may
    look at sessions there would look past its roles, and one that may change users could make itself an
    administrator."""

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and request.user.is_superuser
