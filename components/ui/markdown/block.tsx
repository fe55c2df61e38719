import { clsx } from 'clsx';
import type { Token, Tokens } from 'marked';
import { memo, type ReactNode } from 'react';
import { withBreaks } from '../with-breaks';
import { CodeBlock } from './code-block';
import { renderInline } from './inline';
import { type LongTable, ROWS_SHOWN } from './long-table';
import { countPieces } from './parse';

/** Nesting beyond this is shown as it was written. */
const DEEPEST = 12;
/** What a browser lays out of a table without a pause; beyond it nobody reads on. */
const MOST_COLUMNS = 50;
const MOST_CELL_PIECES = 1_500;

interface BlockProps {
  token: Token;
  streaming: boolean;
  depth?: number;
}

/** One block of a message. While a message streams only its last blocks change; the others are not rendered again. */
export const Block = memo(
  function Block({ token, streaming, depth = 0 }: BlockProps): ReactNode {
    if (depth > DEEPEST) return <p className="whitespace-pre-wrap">{withBreaks(token.raw)}</p>;
    const inner = (tokens: Token[]) => <Blocks tokens={tokens} streaming={streaming} depth={depth + 1} />;
    switch (token.type) {
      case 'paragraph':
        return <p className="my-2">{renderInline(token.tokens)}</p>;
      // The text of a tight list item.
      case 'text':
        return <span>{token.tokens ? renderInline(token.tokens) : withBreaks(token.text)}</span>;
      case 'heading':
        return (
          // One level for all, below the turn's own heading: an agent's outline must not tear holes into the page's.
          <h3 className={HEADING[Math.min(3, token.depth)]}>{renderInline(token.tokens)}</h3>
        );
      case 'code':
        return (
          <CodeBlock code={token.text} language={/^\S*/.exec(token.lang ?? '')?.[0] ?? ''} streaming={streaming} />
        );
      case 'list':
        return <List list={token as Tokens.List} inner={inner} />;
      case 'blockquote':
        return (
          <blockquote className="my-2 border-line-strong border-l-2 pl-3 text-ink-2">
            {inner(token.tokens ?? [])}
          </blockquote>
        );
      case 'table':
        return <Table table={token as Tokens.Table | LongTable} />;
      case 'hr':
        return <hr className="my-4" />;
      case 'space':
      case 'def':
        return null;
      default:
        return <p className="my-2 whitespace-pre-wrap">{withBreaks(token.raw.trimEnd())}</p>;
    }
  },
  (before, after) => before.token.raw === after.token.raw && before.streaming === after.streaming,
);

const HEADING: Record<number, string> = {
  1: 'mt-5 mb-2 text-lg font-semibold',
  2: 'mt-4 mb-1.5 text-md font-semibold',
  3: 'mt-3 mb-1 text-md font-medium',
};

export function Blocks({
  tokens,
  streaming,
  depth,
}: {
  tokens: Token[];
  streaming: boolean;
  depth: number;
}): ReactNode {
  return tokens.map((token, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a text only grows at its end, so the place is the identity
    <Block key={at} token={token} streaming={streaming && at === tokens.length - 1} depth={depth} />
  ));
}

function List({ list, inner }: { list: Tokens.List; inner: (tokens: Token[]) => ReactNode }): ReactNode {
  const Tag = list.ordered ? 'ol' : 'ul';
  return (
    <Tag
      start={list.ordered && typeof list.start === 'number' && list.start !== 1 ? list.start : undefined}
      className={clsx('my-2 pl-5 marker:text-ink-3', list.ordered ? 'list-decimal' : 'list-disc')}
    >
      {list.items.map((item, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: see Blocks
        <li key={at} className={clsx('my-0.5 pl-0.5', item.task && '-ml-4 list-none')}>
          {item.task && <span aria-hidden="true">{item.checked ? '☑ ' : '☐ '}</span>}
          {item.task && <span className="sr-only">{item.checked ? 'done: ' : 'to do: '}</span>}
          {inner(item.tokens.filter((token) => token.type !== 'checkbox'))}
        </li>
      ))}
    </Tag>
  );
}

function Table({ table }: { table: Tokens.Table | LongTable }): ReactNode {
  const rowCount = 'rowCount' in table ? table.rowCount : table.rows.length;
  const rows = shownRows(table);
  const isCut = rows.length < rowCount || table.header.length > MOST_COLUMNS;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls sideways must be reachable by keyboard
    <div className="my-3 overflow-x-auto" tabIndex={0}>
      <table className="text-sm">
        <thead>
          <tr className="border-line-strong border-b">
            {table.header.slice(0, MOST_COLUMNS).map((cell, at) => (
              <th
                // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other identity
                key={at}
                scope="col"
                className={clsx('py-1 pr-5 font-medium text-ink-2', ALIGN[cell.align ?? 'left'])}
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
                <td key={column} className={clsx('py-1 pr-5 align-top', ALIGN[cell.align ?? 'left'])}>
                  {renderInline(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {isCut && (
        <p className="mt-1 text-2xs text-ink-3">
          The beginning of {rowCount.toLocaleString('en')} rows and {table.header.length.toLocaleString('en')} columns.
        </p>
      )}
    </div>
  );
}

/** As many as can be laid out without a pause: fewer of a wide table, and of one with much in its cells. */
function shownRows({ rows }: Tokens.Table | LongTable): Tokens.TableCell[][] {
  const most = Math.min(rows.length, ROWS_SHOWN);
  let count = 0;
  for (let pieces = 0; count < most && pieces < MOST_CELL_PIECES; count++) {
    for (const cell of rows[count]?.slice(0, MOST_COLUMNS) ?? []) pieces += 1 + countPieces(cell.tokens);
  }
  return rows.slice(0, count);
}

const ALIGN = { left: 'text-left', right: 'text-right tabular', center: 'text-center' };
