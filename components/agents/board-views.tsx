import { type FormEvent, type RefObject, useState } from 'react';
import { newId } from '@/components/ui/new-id';
import { ButtonPopover } from '@/components/ui/popover';
import { type SavedView, useSavedViews, ViewLink } from './saved-views';

const MAX_NAME = 60;
const ACTION = 'hit text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink';

/**
 * Links to the saved views. The current view can be saved, or renamed and deleted if it is a saved one.
 *
 * @param params query string of the board
 * @param savedParams the one to save; null if it can't be saved
 */
export function BoardViews(props: {
  button: RefObject<HTMLElement | null>;
  params: string;
  savedParams: string | null;
  onClose: () => void;
}) {
  const { button, params, savedParams, onClose } = props;
  const [views, setViews] = useSavedViews();
  const current = views.find((view) => view.params === params);
  const [deleted, setDeleted] = useState<{ view: SavedView; before: readonly SavedView[] } | null>(null);
  const save = (name: string, params: string) =>
    setViews([...views.filter((view) => view.name !== name), { id: newId(), name, params }]);
  const remove = (view: SavedView) => {
    setDeleted({ view, before: views });
    setViews(views.filter((one) => one !== view));
  };
  const undo = ({ view, before }: { view: SavedView; before: readonly SavedView[] }) => {
    const index = before.indexOf(view);
    setViews([...views.slice(0, index), view, ...views.slice(index)]);
    onClose();
  };
  return (
    <ButtonPopover label="Saved views" button={button} onClose={onClose} className="w-72 py-1.5 text-xs">
      {views.length > 0 && (
        <ul className="mb-1.5 border-line border-b pb-1.5">
          {views.map((view) => (
            <li key={view.id}>
              <ViewLink
                view={view}
                isCurrent={view === current}
                look="block px-3 leading-8 pointer-coarse:leading-[44px]"
                onClick={onClose}
              />
            </li>
          ))}
        </ul>
      )}
      <div className="flex flex-col items-start gap-2 px-3 py-1">
        {views.length === 0 && savedParams === null && (
          <p className="text-ink-2">
            No saved views yet. Filter, sort or choose columns, then save the view here. It will appear in the sidebar.
          </p>
        )}
        {savedParams !== null && (
          <ViewName
            start=""
            action="Save"
            onName={(name) => {
              save(name, savedParams);
              onClose();
            }}
          />
        )}
        {current !== undefined && (
          <>
            <ViewName
              key={current.id}
              start={current.name}
              action="Rename"
              onName={(name) => {
                setViews(views.map((view) => (view === current ? { ...view, name } : view)));
                onClose();
              }}
            />
            <button type="button" onClick={() => remove(current)} className={ACTION}>
              Delete view
            </button>
          </>
        )}
        <span role="status" className="text-ink-3 empty:hidden">
          {deleted !== null && (
            <>
              Deleted “{deleted.view.name}”. {/* biome-ignore lint/a11y/noAutofocus: the pressed button is gone */}
              <button type="button" autoFocus onClick={() => undo(deleted)} className={ACTION}>
                Undo
              </button>
            </>
          )}
        </span>
      </div>
    </ButtonPopover>
  );
}

function ViewName({ start, action, onName }: { start: string; action: string; onName: (name: string) => void }) {
  const [text, setText] = useState(start);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() !== '') onName(text.trim());
  };
  return (
    <form onSubmit={submit} className="flex w-full items-center gap-2">
      <input
        dir="auto"
        // biome-ignore lint/a11y/noAutofocus: the reader has just asked to save
        autoFocus={start === ''}
        aria-label="Name of the view"
        placeholder="Name"
        value={text}
        maxLength={MAX_NAME}
        onChange={(event) => setText(event.target.value)}
        className="h-7 min-w-0 flex-1 rounded border border-line bg-transparent px-2 focus:border-accent focus:outline-none"
      />
      <button type="submit" disabled={text.trim() === ''} className={`${ACTION} disabled:opacity-50`}>
        {action}
      </button>
    </form>
  );
}
