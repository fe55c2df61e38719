/** Maximum number of steps below the last tick; more labels don't fit. */
const MAX_STEPS = 3;
const LEADING = [1, 2, 5];

/**
 * Ticks of a count axis: whole steps from zero. The last tick is above the highest count, so no bar looks cut off.
 */
export function countTicks(max: number): number[] {
  for (let power = 1; ; power *= 10) {
    for (const leading of LEADING) {
      const step = leading * power;
      const steps = Math.floor(max / step) + 1;
      if (steps <= MAX_STEPS) return Array.from({ length: steps + 1 }, (_, index) => index * step);
    }
  }
}

/**
 * Counts over time as bars. Hidden from screen readers, which get the table of values.
 *
 * @param labels labels below the bars; empty for none. At most four, because more would touch in a narrow chart
 * @param lastIsOpen draws the last bar as an outline, because it is still growing
 */
export function BarChart(props: { labels: readonly string[]; values: readonly number[]; lastIsOpen?: boolean }) {
  const { labels, values, lastIsOpen = false } = props;
  // Starts at zero, so small differences don't look large.
  const ticks = countTicks(Math.max(...values));
  const top = ticks.at(-1) ?? 1;
  const percent = (part: number, whole: number) => `${(100 * part) / whole}%`;
  return (
    <div aria-hidden="true" className="tabular pt-2 pb-5 pl-9 text-2xs text-ink-3">
      <div className="relative h-24">
        {ticks.map((tick) => (
          <div key={tick} className="absolute inset-x-0 border-line border-t" style={{ bottom: percent(tick, top) }}>
            <span className="absolute right-full -translate-y-1/2 pr-2">
              {tick.toLocaleString('en', { notation: 'compact' })}
            </span>
          </div>
        ))}
        <div className="absolute inset-0 flex items-end gap-px">
          {values.map((value, index) => (
            <span
              // biome-ignore lint/suspicious/noArrayIndexKey: a place in the chart
              key={index}
              className={
                lastIsOpen && index === values.length - 1
                  ? 'flex-1 border border-ink-2 border-b-0'
                  : 'min-w-0 flex-1 bg-ink-2'
              }
              style={{ height: percent(value, top) }}
            />
          ))}
        </div>
        {labels.map(
          (label, index) =>
            label !== '' && (
              <span
                key={label}
                className="absolute top-full whitespace-nowrap pt-0.5"
                style={{ left: percent(index, labels.length) }}
              >
                {label}
              </span>
            ),
        )}
      </div>
    </div>
  );
}
