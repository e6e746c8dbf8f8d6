// Draws the figures of the page; without it, and on paper, the pictures beside them are shown.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const config = { responsive: true, displaylogo: false };
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
    Plotly.newPlot(canvas, figure.data, figure.layout, config).then(() =>
      Plotly.relayout(canvas, colours()),
    );
    dark.addEventListener("change", () => Plotly.relayout(canvas, colours()));
  }
})();
