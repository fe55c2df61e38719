/**
 * Prints `name: figure unit (limit …, ratio …)` and marks the process as failed if the limit is missed. `ratio` is
 * figure ÷ limit for minimums and limit ÷ figure for maximums: ≥ 1 is within the limit.
 */
export function report(
  name: string,
  figure: number,
  unit: string,
  limit: { atLeast: number } | { atMost: number },
): void {
  const least = 'atLeast' in limit;
  const bound = least ? limit.atLeast : limit.atMost;
  const ratio = least ? figure / bound : bound / figure;
  print(`${name}: ${round(figure)} ${unit} (limit ${least ? '≥' : '≤'} ${round(bound)}, ratio ${round(ratio)})`);
  if (ratio < 1) process.exitCode = 1;
}

/** Prints a figure without a limit. */
export function note(name: string, figure: number, unit: string): void {
  print(`${name}: ${round(figure)} ${unit}`);
}

/** The value below which `share` of the values lie; NaN if there are none. */
export function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

function round(value: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: 3, useGrouping: false });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
