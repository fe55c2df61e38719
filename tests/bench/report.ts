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

function round(value: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: 3, useGrouping: false });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
