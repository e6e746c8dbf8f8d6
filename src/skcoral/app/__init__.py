"""The web app: move the floor and watch. Widgets and caching only; started by ``coral app``."""

#: Options of the server that the app counts on, as ``streamlit run`` takes them.
SERVER_OPTIONS = (
    "--browser.gatherUsageStats=false",
    "--client.showErrorDetails=none",
    "--client.toolbarMode=viewer",
    "--runner.postScriptGC=false",  # as long as everything else together, at every move
    "--server.fileWatcherType=none",
    "--server.maxUploadSize=25",
    "--theme.light.primaryColor=#1c74a8",
    "--theme.dark.primaryColor=#4aa8dc",
)
