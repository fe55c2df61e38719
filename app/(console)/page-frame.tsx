import { clsx } from 'clsx';
import type { ReactNode } from 'react';
import { BackLink } from './back-link';
import { PageHeader } from './page-header';

/** A page with a title, a back link and the connection state. */
export function PageFrame(props: {
  title: string;
  /** The page above, where the bottom bar has no link to it. */
  back?: { href: string; label: string };
  /** Links beside the title. */
  actions?: ReactNode;
  /** For a table with many columns. */
  wide?: boolean;
  /** Adds `#page-pane` beside the page, shown from 1600 px. */
  hasPane?: boolean;
  children: ReactNode;
}) {
  const { title, back, actions, wide = false, hasPane = false, children } = props;
  const main = (
    // rows that get the focus stay clear of the sticky heads, and of the bar below
    <main className="h-full scroll-pt-14 scroll-pb-14 overflow-y-auto has-[.sticky[role=rowgroup]]:scroll-pt-24">
      <PageHeader
        title={title}
        back={back && <BackLink {...back} />}
        actions={actions}
        className="sm:px-6"
        rowClass={wide ? undefined : 'max-w-[1032px]'}
      />
      <div
        className={clsx(
          'px-4 py-5 has-[.empty-page]:max-w-none max-lg:has-[.strip]:pt-2 max-sm:has-[.strip]:pt-0 sm:px-6',
          wide ? 'max-w-[1560px]' : 'max-w-[1080px]',
        )}
      >
        {children}
      </div>
    </main>
  );
  if (!hasPane) return main;
  return (
    <div className="with-pane h-full">
      {main}
      <div id="page-pane" className="hidden border-l" />
    </div>
  );
}
