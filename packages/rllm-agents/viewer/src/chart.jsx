// One chart of uPlot that follows its data, its width and the theme.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colour } from "./theme.js";

/** Axes in the colours of the theme. */
export function axes(labels) {
  const line = { stroke: colour("line"), width: 1 };
  return labels.map((label) => ({
    label,
    labelSize: label ? 18 : 0,
    size: label ? 30 : 52,
    stroke: colour("quiet"),
    grid: line,
    ticks: line,
    font: "11px system-ui",
    labelFont: "11px system-ui",
  }));
}

/** `options()` is called anew for each theme; `data` may grow. */
export function Chart({ options, data, height, theme, label }) {
  const place = useRef(null);
  const plot = useRef(null);
  useEffect(() => {
    const width = place.current.clientWidth || 320;
    plot.current = new uPlot({ ...options(), width, height }, data, place.current);
    const observer = new ResizeObserver(([entry]) => {
      const wide = Math.floor(entry.contentRect.width);
      if (wide > 0 && wide !== plot.current.width) plot.current.setSize({ width: wide, height });
    });
    observer.observe(place.current);
    return () => {
      observer.disconnect();
      plot.current.destroy();
    };
  }, [theme]);
  useEffect(() => plot.current.setData(data), [data]);
  return <div ref={place} class="chart" role="img" aria-label={label} />;
}
