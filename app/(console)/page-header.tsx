import { clsx } from 'clsx';
import type { ReactNode } from 'react';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { Phrase } from '@/components/ui/name';

/** The sidebar shows the connection state, unless it is collapsed or hidden. */
export function PageHeader(props: {
  title: string;
  back?: ReactNode;
  actions?: ReactNode;
  className: string;
  /** Class names of the title and actions together. */
  rowClass?: string;
}) {
  const { title, back, actions, className, rowClass } = props;
  return (
    <div
      className={clsx(
        'sticky short:static top-0 z-10 flex h-12 shrink-0 items-center gap-3 border-line border-b bg-ground px-4',
        className,
      )}
    >
      {back}
      <div className={clsx('flex min-w-0 flex-1 items-center gap-3', rowClass)}>
        <h1 className="min-w-0 flex-1 truncate font-medium text-md">
          <Phrase strict text={title} />
        </h1>
        <span id="page-actions" className="empty:hidden">
          {actions}
        </span>
      </div>
      <span className="ml-auto lg:not-icons:hidden">
        <ConnectionBadge />
      </span>
    </div>
  );
}
