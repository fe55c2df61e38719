import { stripVTControlCharacters } from 'node:util';

/** Columns as wide as needed; foreign text must not move the terminal's cursor. */
export function table(head: string[], rows: string[][]): void {
  const safe = [head, ...rows].map((row) =>
    row.map((cell) => stripVTControlCharacters(cell).replace(/\s+/g, ' ').slice(0, 120)),
  );
  const widths = head.map((_, column) => Math.max(...safe.map((row) => row[column]?.length ?? 0)));
  for (const row of safe)
    print(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
