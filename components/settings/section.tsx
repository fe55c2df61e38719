import type { ReactNode } from 'react';

/** A part of a page of settings. */
export function Section(props: { title: string; count?: number | undefined; about?: ReactNode; children: ReactNode }) {
  const { title, count, about, children } = props;
  return (
    <section>
      <h2 className="flex items-baseline gap-1.5 font-medium text-md">
        {title}
        {count !== undefined && <span className="tabular font-normal text-ink-3 text-xs">{count}</span>}
      </h2>
      {about !== undefined && <p className="mt-0.5 max-w-prose text-pretty text-ink-3 text-xs">{about}</p>}
      <div className="mt-3">{children}</div>
    </section>
  );
}
