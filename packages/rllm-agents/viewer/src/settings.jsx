// The run's settings and what it came to, as it wrote them.

import { short, visible } from "./visible.js";

export function Settings({ run }) {
  const figures = Object.entries(run.summary).filter(([, value]) => typeof value !== "object");
  return (
    <div class="columns">
      <section>
        <h2>Result</h2>
        {figures.length === 0 && <p class="empty">The run has no summary yet.</p>}
        <table>
          <tbody>
            {figures.map(([name, value]) => (
              <tr key={name}>
                <th scope="row">{visible(name)}</th>
                <td>{typeof value === "number" ? short(value) : visible(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section>
        <h2>Settings</h2>
        {run.settings ? <pre tabIndex={0}>{visible(run.settings)}</pre> : <p class="empty">The run left none.</p>}
      </section>
    </div>
  );
}
