'use client';

import { clsx } from 'clsx';
import { type ReactNode, useRef } from 'react';
import { MARK, useMark } from './setting';

export interface Column<Row> {
  name: string;
  /** Label before the value when the columns are stacked. */
  before?: string;
  cell: (row: Row) => ReactNode;
  className?: string;
}

/** A table that stacks its columns below the row's name on narrow screens. */
export function FactTable<Row extends { id: string }>(props: {
  label: string;
  rows: readonly Row[];
  /** The first column names the row, and the last one has its actions. */
  columns: readonly Column<Row>[];
  /** Grid columns on wide screens. */
  widths: string;
}) {
  const { label, rows, columns, widths } = props;
  const grid = clsx('@3xl:grid @3xl:items-baseline @3xl:gap-x-4', widths);
  return (
    <div className="@container">
      {/* biome-ignore lint/a11y/useSemanticElements: a grid layout would remove the table semantics */}
      <div role="table" aria-label={label}>
        {/* biome-ignore lint/a11y/useSemanticElements: as the table */}
        <div role="rowgroup" className="@max-3xl:sr-only">
          {/* biome-ignore lint/a11y/useSemanticElements: as the table */}
          {/* biome-ignore lint/a11y/useFocusableInteractive: it is not interactive */}
          <div role="row" className={clsx(grid, 'border-line-strong border-b py-1 text-2xs text-ink-3')}>
            {columns.map(({ name, className }) => (
              // biome-ignore lint/a11y/useSemanticElements: as the table
              // biome-ignore lint/a11y/useFocusableInteractive: it is not interactive
              <span key={name} role="columnheader" className={className}>
                {name}
              </span>
            ))}
          </div>
        </div>
        {/* biome-ignore lint/a11y/useSemanticElements: as the table */}
        <div role="rowgroup">
          {rows.map((row) => (
            // biome-ignore lint/a11y/useSemanticElements: as the table
            // biome-ignore lint/a11y/useFocusableInteractive: it is not interactive
            <div
              key={row.id}
              role="row"
              className={clsx(grid, 'list-row relative border-line border-b text-xs @max-3xl:pr-20')}
            >
              {columns.map((column, index) => (
                <Fact
                  key={column.name}
                  column={column}
                  row={row}
                  isFirst={index === 0}
                  isLast={index === columns.length - 1}
                />
              ))}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

function Fact<Row>(props: { column: Column<Row>; row: Row; isFirst: boolean; isLast: boolean }) {
  const { column, row, isFirst, isLast } = props;
  const { before, cell, className } = column;
  return (
    <div
      role={isFirst ? 'rowheader' : 'cell'}
      className={clsx(
        'min-w-0 [overflow-wrap:anywhere]',
        isFirst && 'font-medium text-row',
        isLast &&
          '@max-3xl:absolute @max-3xl:top-(--row-y) @max-3xl:right-0 pointer-coarse:@max-3xl:has-[button]:-top-1 text-right',
        !isFirst && !isLast && 'text-ink-2 @max-3xl:mr-4 @max-3xl:inline-block',
        className,
      )}
    >
      {before !== undefined && <span className="@3xl:hidden text-ink-3">{before} </span>}
      {cell(row)}
    </div>
  );
}

/** @param props.id lets the search of the settings find the section */
export function Section(props: {
  id?: string;
  title: string;
  count?: number | undefined;
  about?: ReactNode;
  children: ReactNode;
}) {
  const { id, title, count, about, children } = props;
  const box = useRef<HTMLElement>(null);
  const isMarked = useMark(id, box);
  return (
    <section
      ref={box}
      id={id}
      tabIndex={id === undefined ? undefined : -1}
      data-marked={isMarked || undefined}
      className={clsx('scroll-mt-16', isMarked && MARK)}
    >
      <h2 className="flex items-baseline gap-1.5 font-medium text-md">
        {title}
        {count !== undefined && <span className="tabular font-normal text-ink-3 text-xs">{count}</span>}
      </h2>
      {about !== undefined && <p className="mt-0.5 max-w-prose text-pretty text-ink-3 text-xs">{about}</p>}
      <div className="mt-3">{children}</div>
    </section>
  );
}
