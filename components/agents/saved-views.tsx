'use client';

import { fieldsOf } from '@interlude/protocol/fields';
import { clsx } from 'clsx';
import { usePathname, useSearchParams } from 'next/navigation';
import { type ComponentProps, useRef, useState } from 'react';
import { Link } from '@/components/ui/link';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { VIEWS_KEY } from '@/components/ui/storage-key';
import { useStoredAnywhere } from '@/components/ui/use-stored-anywhere';

/** A named filter, sort and set of columns of the board. */
export interface SavedView {
  id: string;
  name: string;
  /** Query string of the board. */
  params: string;
}

const MAX_VIEWS = 50;

/** Links to the board's saved views, for the sidebar. Renders nothing if there are none. */
export function SavedViews() {
  const [views] = useSavedViews();
  const isBoard = usePathname() === '/agents';
  const params = useSearchParams().toString();
  if (views.length === 0) return null;
  return (
    <ul aria-label="Saved views">
      {views.map((view) => (
        <li key={view.id}>
          <ViewLink view={view} isCurrent={isBoard && view.params === params} look={IN_SIDEBAR} />
        </li>
      ))}
    </ul>
  );
}

const IN_SIDEBAR = 'block h-8 rounded-md pr-2.5 pl-9 leading-8 pointer-coarse:h-11 pointer-coarse:leading-[44px]';

export function ViewLink(
  props: { view: SavedView; isCurrent: boolean; look: string } & Pick<ComponentProps<typeof Link>, 'onClick'>,
) {
  const { view, isCurrent, look, onClick } = props;
  return (
    <Link
      onClick={onClick}
      href={`/agents?${view.params}`}
      aria-current={isCurrent ? 'page' : undefined}
      prefetch={false}
      dir="auto"
      title={view.name}
      className={clsx('truncate text-ink-2 hover:text-ink aria-[current]:bg-raised aria-[current]:text-ink', look)}
    >
      {view.name}
    </Link>
  );
}

const boardCode = new CodeOnDemand(async () => (await import('./board-views')).BoardViews);

/**
 * The board's button for its saved views. Always as wide as “Save view”, so nothing moves when its label changes.
 *
 * @param params query string of the board
 * @param savedParams the same with the columns that are shown because this browser prefers them
 */
export function ViewsButton({ params, savedParams }: { params: string; savedParams: string }) {
  const [views] = useSavedViews();
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  usePreload(boardCode);
  const canSave = savedParams !== '' && views.length < MAX_VIEWS && views.every((view) => view.params !== params);
  return (
    <>
      <button
        ref={button}
        type="button"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className='hit text-left text-ink-2 underline decoration-line-strong underline-offset-2 before:invisible before:block before:h-0 before:content-["Save_view"] hover:text-ink'
      >
        {canSave ? 'Save view' : 'Views'}
      </button>
      {isOpen && (
        <OnDemand
          code={boardCode}
          name="The saved views"
          props={{ button, params, savedParams: canSave ? savedParams : null, onClose: () => setOpen(false) }}
        />
      )}
    </>
  );
}

/** The user's saved views, stored in the browser. */
export function useSavedViews(): [readonly SavedView[], (views: readonly SavedView[]) => void] {
  const [stored, store] = useStoredAnywhere(VIEWS_KEY);
  return [viewsFrom(stored), (views) => store(JSON.stringify(views))];
}

function viewsFrom(stored: string | null): SavedView[] {
  try {
    const views: unknown = JSON.parse(stored ?? '[]');
    return Array.isArray(views) ? views.flatMap(viewFrom) : [];
  } catch {
    return [];
  }
}

function viewFrom(value: unknown): SavedView[] {
  const { id, name, params } = fieldsOf(value);
  const isView = typeof id === 'string' && typeof name === 'string' && typeof params === 'string';
  return isView ? [{ id, name, params }] : [];
}
