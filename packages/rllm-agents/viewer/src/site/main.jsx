// The site: a head with tabs, and one of four views below it.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Help } from "../help.jsx";
import { goTo, usePlace } from "../place.js";
import { nextTheme, useTheme } from "../theme.js";
import { oneLine } from "../visible.js";
import { Boards } from "./boards.jsx";
import { Compare } from "./compare.jsx";
import { Curves } from "./curves.jsx";
import { useData } from "./data.js";
import { Environments } from "./environments.jsx";
import { TABS } from "./tabs.js";

const KEYS = [
  ["1 2 3 4", TABS.join(", ")],
  ["/", "search"],
  ["Tab  Enter", "other fields, heads that sort, and names that open"],
  ["↑ ↓  PgUp PgDn  Home End", "other environments, where their list has the focus"],
  ["d", "dark or light"],
  ["?", "these keys"],
];

function useKeys(toggleHelp) {
  useEffect(() => {
    function pressed(event) {
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      const number = "1234".indexOf(event.key);
      if (number >= 0) goTo(TABS[number]);
      else if (event.key === "?") toggleHelp();
      else if (event.key === "d") nextTheme();
      else if (event.key === "/") document.getElementById("search")?.focus();
      else return;
      event.preventDefault();
    }
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [toggleHelp]);
}

function Head({ site, tab, onHelp }) {
  return (
    <header>
      <h1>rLLM leaderboards</h1>
      <nav aria-label="Views">
        {TABS.map((name, index) => (
          <a
            key={name}
            href={`#${name}`}
            aria-current={name === tab ? "page" : undefined}
            onClick={(event) => {
              event.preventDefault();
              goTo(name);
            }}
          >
            {name} <kbd>{index + 1}</kbd>
          </a>
        ))}
      </nav>
      <p class="status">
        made {oneLine(site.made, 12)} {site.commit && `at ${oneLine(site.commit.slice(0, 7), 7)}`}
      </p>
      <button type="button" onClick={nextTheme} aria-label="Light or dark">◐</button>
      <button type="button" onClick={onHelp} aria-label="Keys">?</button>
    </header>
  );
}

function App() {
  const site = useData("index");
  const { tab, values } = usePlace(TABS);
  const [showsHelp, setShowsHelp] = useState(false);
  const theme = useTheme();
  useKeys(() => setShowsHelp((shown) => !shown));
  if (site === undefined) return <p class="empty">Reading…</p>;
  if (site === null) return <p class="empty">data/index.js is not beside this page: it was not copied whole.</p>;
  return (
    <>
      <Head site={site} tab={tab} onHelp={() => setShowsHelp(true)} />
      <main>
        {tab === "leaderboards" && <Boards site={site} values={values} />}
        {tab === "curves" && <Curves site={site} values={values} theme={theme} />}
        {tab === "environments" && <Environments site={site} values={values} />}
        {tab === "compare" && <Compare site={site} values={values} />}
      </main>
      {showsHelp && <Help keys={KEYS} onClose={() => setShowsHelp(false)} />}
    </>
  );
}

render(<App />, document.getElementById("app"));
