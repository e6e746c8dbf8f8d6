"""From a file to a model, one way for the command, the app and the report.

``opening.open_file`` reads a file once and tells what its columns hold, ``OpenedFile.choose`` takes
some of them as variables, and a ``dataset.Dataset`` estimates their correlations and fits a model.
The ``fit.Fit`` measures its effect, checks its certificate once, and writes what is asked for.
"""
