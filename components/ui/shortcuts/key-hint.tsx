import { type ShortcutId, useKeyLabels } from './use-shortcuts';

/** The first key of a shortcut, and what it does. */
export function KeyHint({ id, what }: { id: ShortcutId; what: string }) {
  const [key] = useKeyLabels(id);
  if (key === undefined) return null;
  return (
    <span>
      <kbd className="text-ink-2">{key}</kbd> {what}
    </span>
  );
}
