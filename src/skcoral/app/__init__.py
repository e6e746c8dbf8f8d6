"""The web app, started by ``coral app``: widgets and caching only."""

#: Options of the server that the app needs, as ``streamlit run`` takes them.
SERVER_OPTIONS = (
    "--browser.gatherUsageStats=false",
    "--client.showErrorDetails=none",
    "--client.toolbarMode=viewer",
    "--runner.postScriptGC=false",  # takes as long as everything else together
    "--server.fileWatcherType=none",
    "--server.maxUploadSize=25",
    "--theme.light.primaryColor=#1c74a8",
    "--theme.dark.primaryColor=#4aa8dc",
)
