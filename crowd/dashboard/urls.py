from django.urls import path

from crowd.dashboard.views import downloads, login, overview, people, previews, results, stimuli, studies

app_name = "dashboard"
urlpatterns = [
    path("", studies.studies, name="studies"),
    path("login/", login.login, name="login"),
    path("logout/", login.logout, name="logout"),
    path("enter/<str:token>/", login.enter, name="enter"),
    path("studies/<slug:slug>/", overview.overview, name="overview"),
    path("studies/<slug:slug>/live/", overview.live, name="live"),
    path("studies/<slug:slug>/live/rendering/", overview.live_drawing, name="live_drawing"),
    path("studies/<slug:slug>/participants/", people.participants, name="participants"),
    path("studies/<slug:slug>/participants/<uuid:session>/", people.participant, name="participant"),
    path("studies/<slug:slug>/exclusions/", people.exclusions, name="exclusions"),
    path("studies/<slug:slug>/stimuli/", stimuli.stimuli, name="stimuli"),
    path("studies/<slug:slug>/pictures/<int:stimulus>/<slug:kind>/", stimuli.picture, name="picture"),
    path("studies/<slug:slug>/preview/", previews.preview, name="preview"),
    path("studies/<slug:slug>/money/", results.money, name="money"),
    path("studies/<slug:slug>/report/", results.report, name="report"),
    path("studies/<slug:slug>/report/unseal/", results.unseal, name="unseal"),
    path("studies/<slug:slug>/report/refresh/", results.refresh, name="refresh"),
    path("studies/<slug:slug>/report/<slug:origin>/", results.report_page, name="report_page"),
    path("studies/<slug:slug>/downloads/", downloads.downloads, name="downloads"),
    path("studies/<slug:slug>/downloads/export/", downloads.export, name="export"),
    path("studies/<slug:slug>/downloads/definition.json", downloads.definition, name="definition"),
    path(
        "studies/<slug:slug>/downloads/report-<slug:origin>.json", downloads.report_json, name="report_json"
    ),
    path("studies/<slug:slug>/log/", downloads.log, name="log"),
    path("studies/<slug:slug>/build/", studies.build, name="build"),
    path("studies/<slug:slug>/close/", studies.close, name="close"),
]
