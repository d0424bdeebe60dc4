// A table whose columns sort it.

import { short } from "../visible.js";

/** Order two values: numbers and texts upwards, what is missing last in either direction. */
function compare(one, other, isDown) {
  const isMissing = (value) => value === null || value === undefined || value === "";
  if (isMissing(one) || isMissing(other)) return isMissing(one) - isMissing(other);
  const sign = isDown ? -1 : 1;
  if (typeof one === "number" && typeof other === "number") return sign * (one - other);
  return sign * String(one).localeCompare(String(other), "en", { numeric: true });
}

/** Rows in the order of a column; as they are where no column has that name. */
export function sorted(rows, columns, order, isDown) {
  const column = columns.find((one) => one.key === order);
  if (!column) return rows;
  return [...rows].sort((a, b) => compare(column.value(a), column.value(b), isDown));
}

function Head({ column, order, isDown, onOrder }) {
  const isChosen = order === column.key;
  const sort = isChosen ? (isDown ? "descending" : "ascending") : "none";
  return (
    <th scope="col" aria-sort={sort} class={column.isText ? "" : "number"} title={column.title}>
      <button
        type="button"
        class="sort"
        onClick={() => onOrder(column.key, isChosen ? !isDown : !column.isText)}
      >
        {column.label}
        <span aria-hidden="true">{isChosen ? (isDown ? " ▾" : " ▴") : ""}</span>
      </button>
    </th>
  );
}

/**
 * `columns` have key, label, value(row) to sort by, show(row) or a number's few digits, isText and
 * isHead; `onOrder(key, isDown)` is called when a head is pressed.
 */
export function Table({ label, columns, rows, rowKey, order, isDown, onOrder, after = () => null }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="board">
        <thead>
          <tr>
            {columns.map((column) => (
              <Head key={column.key} column={column} order={order} isDown={isDown} onOrder={onOrder} />
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted(rows, columns, order, isDown).flatMap((row) => [
            <tr key={rowKey(row)}>
              {columns.map((column) => {
                const shown = column.show ? column.show(row) : short(column.value(row));
                const classes = `${column.isText ? "" : "number"} ${column.shade?.(row) ?? ""}`;
                return column.isHead ? (
                  <th key={column.key} scope="row">{shown}</th>
                ) : (
                  <td key={column.key} class={classes}>{shown}</td>
                );
              })}
            </tr>,
            after(row),
          ])}
        </tbody>
      </table>
    </div>
  );
}
