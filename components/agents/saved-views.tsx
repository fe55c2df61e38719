'use client';

import { fieldsOf } from '@interlude/protocol/fields';
import { clsx } from 'clsx';
import { usePathname, useSearchParams } from 'next/navigation';
import { type FormEvent, useEffect, useState } from 'react';
import { Link } from '@/components/ui/link';
import { newId } from '@/components/ui/new-id';
import { VIEWS_KEY } from '@/components/ui/storage-key';
import { useStoredAnywhere } from '@/components/ui/use-stored-anywhere';

/** A named filter, sort and set of columns of the board. */
interface SavedView {
  id: string;
  name: string;
  /** Query string of the board. */
  params: string;
}

const MAX_VIEWS = 50;
const MAX_NAME = 60;
const UNDO_MS = 10_000;
const ACTION = 'hit text-ink-3 underline decoration-line-strong underline-offset-2 hover:text-ink';

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
const ON_BOARD = 'hit inline-block max-w-52 rounded px-2 py-1 aria-[current]:font-medium';

function ViewLink({ view, isCurrent, look }: { view: SavedView; isCurrent: boolean; look: string }) {
  return (
    <Link
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

/**
 * The saved views above the board. The current view can be saved, or renamed and deleted if it is a saved one.
 *
 * @param params query string of the board
 * @param savedParams the same with the columns that are shown because this browser prefers them
 */
export function BoardViews({ params, savedParams }: { params: string; savedParams: string }) {
  const [views, setViews] = useSavedViews();
  const current = views.find((view) => view.params === params);
  const [naming, setNaming] = useState<'save' | 'rename' | null>(null);
  const [deleted, setDeleted] = useState<{ view: SavedView; before: readonly SavedView[] } | null>(null);
  useEffect(() => {
    if (deleted === null) return;
    const timer = setTimeout(() => setDeleted(null), UNDO_MS);
    return () => clearTimeout(timer);
  }, [deleted]);
  const canSave = savedParams !== '' && current === undefined && views.length < MAX_VIEWS;
  if (views.length === 0 && !canSave && deleted === null) return null;

  const name = (text: string) => {
    setNaming(null);
    if (naming === 'rename' && current !== undefined) {
      setViews(views.map((view) => (view === current ? { ...view, name: text } : view)));
    } else setViews([...views.filter((view) => view.name !== text), { id: newId(), name: text, params: savedParams }]);
  };
  const remove = (view: SavedView) => {
    setDeleted({ view, before: views });
    setViews(views.filter((one) => one !== view));
  };
  const undo = ({ view, before }: { view: SavedView; before: readonly SavedView[] }) => {
    const index = before.indexOf(view);
    setViews([...views.slice(0, index), view, ...views.slice(index)]);
    setDeleted(null);
  };
  return (
    <nav aria-label="Saved views" className="flex flex-wrap items-baseline gap-x-2 gap-y-1 pb-2 text-xs">
      {views.length > 0 && (
        <ul className="-ml-2 flex min-w-0 flex-wrap items-center">
          {views.map((view) => (
            <li key={view.id} className="min-w-0">
              <ViewLink view={view} isCurrent={view === current} look={ON_BOARD} />
            </li>
          ))}
        </ul>
      )}
      {naming !== null ? (
        <ViewName
          start={naming === 'rename' ? (current?.name ?? '') : ''}
          action={naming === 'rename' ? 'Rename' : 'Save'}
          onName={name}
          onCancel={() => setNaming(null)}
        />
      ) : (
        <>
          {canSave && (
            <button type="button" onClick={() => setNaming('save')} className={ACTION}>
              Save view
            </button>
          )}
          {current !== undefined && (
            <>
              <button type="button" onClick={() => setNaming('rename')} className={ACTION}>
                Rename view
              </button>
              <button type="button" onClick={() => remove(current)} className={ACTION}>
                Delete view
              </button>
            </>
          )}
        </>
      )}
      <span role="status" className="text-ink-3">
        {deleted !== null && (
          <>
            Deleted “{deleted.view.name}”. {/* biome-ignore lint/a11y/noAutofocus: the pressed button is gone */}
            <button type="button" autoFocus onClick={() => undo(deleted)} className={ACTION}>
              Undo
            </button>
          </>
        )}
      </span>
    </nav>
  );
}

function ViewName(props: { start: string; action: string; onName: (name: string) => void; onCancel: () => void }) {
  const { start, action, onName, onCancel } = props;
  const [text, setText] = useState(start);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() !== '') onName(text.trim());
  };
  return (
    <form
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        onCancel();
      }}
      className="flex min-w-0 items-center gap-2"
    >
      <input
        dir="auto"
        // biome-ignore lint/a11y/noAutofocus: the reader has just asked for it
        autoFocus
        aria-label="Name of the view"
        placeholder="Name"
        value={text}
        maxLength={MAX_NAME}
        onChange={(event) => setText(event.target.value)}
        className="h-7 w-40 min-w-0 rounded border border-line bg-transparent px-2 focus:border-accent focus:outline-none"
      />
      <button type="submit" disabled={text.trim() === ''} className={`${ACTION} disabled:opacity-50`}>
        {action}
      </button>
      <button type="button" onClick={onCancel} className={ACTION}>
        Cancel
      </button>
    </form>
  );
}

/** The user's saved views, stored in the browser. */
function useSavedViews(): [readonly SavedView[], (views: readonly SavedView[]) => void] {
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
