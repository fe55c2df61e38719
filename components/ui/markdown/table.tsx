'use client';

import { clsx } from 'clsx';
import type { Tokens } from 'marked';
import type { ReactNode } from 'react';
import { directionOf } from '../direction';
import { plainWords } from '../plain-words';
import { useOverflowsSideways } from '../use-overflows-sideways';
import { nameText } from '../verbatim';
import { renderInline } from './inline';
import { countPieces, type LongTable } from './parse';

/** Limits of a table's layout. */
const MOST_COLUMNS = 50;
const MOST_CELL_PIECES = 1_500;
const NAMING_COLUMNS = 4;
/** A longer cell wraps, at about this width. */
const SHORT_CELL = 16;

/** A table. Words stay whole: a wide table scrolls, and is focusable only then. */
export function Table({ table }: { table: LongTable }): ReactNode {
  const { box, overflows } = useOverflowsSideways<HTMLDivElement>();
  const { rowCount } = table;
  const rows = shownRows(table);
  const isCut = rows.length < rowCount || table.header.length > MOST_COLUMNS;
  return (
    <div className="my-3">
      <div
        ref={box}
        // On the box, so that a narrow table starts at the right side.
        dir={directionOf(table.raw)}
        {...(overflows && { role: 'region', 'aria-label': tableName(table), tabIndex: 0 })}
        className="scroll-sideways overflow-x-auto pb-1"
      >
        <table className="text-sm [&_:is(td,th,a,code)]:[overflow-wrap:normal]">
          <thead>
            <tr className="border-line-strong border-b">
              {table.header.slice(0, MOST_COLUMNS).map((cell, at) => (
                <th
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other identity
                  key={at}
                  scope="col"
                  dir="auto"
                  className={clsx('py-1 pe-5 align-bottom font-medium text-ink-2', lookOf(cell))}
                >
                  {renderInline(cell.tokens)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other identity
              <tr key={at} className="border-b last:border-0">
                {row.slice(0, MOST_COLUMNS).map((cell, column) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other identity
                  <td key={column} dir="auto" className={clsx('py-1 pe-5 align-top', lookOf(cell))}>
                    {renderInline(cell.tokens)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {isCut && (
        <p className="mt-1 text-2xs text-ink-3">
          The beginning of {rowCount.toLocaleString('en')} rows and {table.header.length.toLocaleString('en')} columns.
        </p>
      )}
    </div>
  );
}

/** `Table: Check, Result` */
function tableName({ header }: Tokens.Table): string {
  const columns = header
    .slice(0, NAMING_COLUMNS)
    .map(({ text }) => nameText(plainWords(text), 60))
    .filter(Boolean);
  return columns.length === 0 ? 'Table' : `Table: ${columns.join(', ')}`;
}

/** Rows that can be laid out without a pause: fewer if they are wide or their cells are complex. */
function shownRows({ rows }: LongTable): Tokens.TableCell[][] {
  let count = 0;
  for (let pieces = 0; count < rows.length && pieces < MOST_CELL_PIECES; count++) {
    for (const cell of rows[count]?.slice(0, MOST_COLUMNS) ?? []) pieces += 1 + countPieces(cell.tokens);
  }
  return rows.slice(0, count);
}

function lookOf({ text, align }: Tokens.TableCell): string {
  return clsx(text.length <= SHORT_CELL ? 'whitespace-nowrap' : 'min-w-[16ch]', ALIGN[align ?? 'start']);
}

const ALIGN = { start: 'text-start', left: 'text-left', right: 'text-right tabular', center: 'text-center' };
