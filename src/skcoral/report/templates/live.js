// Draws the figures of the page; without it, and on paper, the pictures beside them are shown.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Above a figure the toolbar would lie on the legend where there is no pointer to move away.
  const bar = matchMedia("(hover: hover)").matches ? "hover" : false;
  const config = { responsive: true, displaylogo: false, displayModeBar: bar };
  const places = [...document.querySelectorAll(".live")];
  const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = () => ({
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    "font.color": read("--ink"),
    "xaxis.gridcolor": read("--line"),
    "yaxis.gridcolor": read("--line"),
    "hoverlabel.bgcolor": read("--paper"),
    "hoverlabel.font.color": read("--ink"),
  });
  document.documentElement.classList.add("drawn");
  for (const place of places) {
    const figure = JSON.parse(place.querySelector("script").textContent);
    const canvas = place.appendChild(document.createElement("div"));
    const paint = () => {
      // Numbers in cells stand on the page where a correlation is near zero.
      const heat = figure.data[0].type === "heatmap" ? { "textfont.color": read("--ink") } : {};
      return Plotly.update(canvas, heat, colours());
    };
    Plotly.newPlot(canvas, figure.data, figure.layout, config).then(paint);
    dark.addEventListener("change", paint);
  }
})();
