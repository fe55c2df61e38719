'use client';

import { commandsOf, type NamedCommand } from '@interlude/protocol/agent-status-view';
import { clsx } from 'clsx';
import { type RefObject, useEffect, useEffectEvent, useId, useLayoutEffect, useMemo, useState } from 'react';
import { plural } from '@/components/ui/duration';
import { OVERLAY } from '@/components/ui/in-view';
import { Name, Words } from '@/components/ui/name';

/** Maximum number of commands listed. Typing narrows the list. */
const MAX_COMMANDS = 50;

/**
 * Completion list of slash commands. The field keeps the focus: arrows move in the list, Enter and Tab complete, Escape
 * closes it.
 */
export function CommandNames(props: {
  status: Record<string, unknown> | null;
  /** Text typed so far, including the slash. */
  typed: string;
  field: RefObject<HTMLTextAreaElement | null>;
  onTake: (text: string) => void;
}) {
  const { status, typed, field, onTake } = props;
  const id = useId();
  const commands = status?.commands;
  const all = useMemo(() => commandsOf({ commands }), [commands]);
  const found = useMemo(() => commandsWith(all, typed.slice(1)), [all, typed]);
  const [chosen, setChosen] = useState({ typed, at: 0 });
  const [isClosed, setClosed] = useState(false);
  const at = chosen.typed === typed ? Math.min(chosen.at, found.length - 1) : 0;
  const isOpen = found.length > 0 && !isClosed;
  const complete = (command: NamedCommand) => onTake(`/${command.name} `);

  const onKey = useEffectEvent((event: KeyboardEvent) => {
    if (!isOpen || event.isComposing || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const command = found[at];
    switch (event.key) {
      case 'ArrowDown':
      case 'ArrowUp': {
        const step = event.key === 'ArrowDown' ? 1 : found.length - 1;
        setChosen({ typed, at: (at + step) % found.length });
        break;
      }
      case 'Escape':
        setClosed(true);
        break;
      case 'Enter':
      case 'Tab':
        // The name is complete: Enter sends the message.
        if (command === undefined || (event.key === 'Enter' && typed === `/${command.name}`)) return;
        complete(command);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  });
  useEffect(() => {
    const element = field.current;
    const listen = (event: KeyboardEvent) => onKey(event);
    element?.addEventListener('keydown', listen);
    return () => element?.removeEventListener('keydown', listen);
  }, [field]);
  useLayoutEffect(() => {
    const element = field.current;
    if (!isOpen || element === null) return;
    const attributes = { 'aria-autocomplete': 'list', 'aria-controls': id, 'aria-activedescendant': `${id}-${at}` };
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: 'nearest' });
    return () => {
      for (const name of Object.keys(attributes)) element.removeAttribute(name);
    };
  }, [isOpen, field, id, at]);

  return (
    <>
      <p role="status" className="sr-only">
        {isOpen ? `${plural(found.length, 'command')}. Use the arrow keys to choose.` : ''}
      </p>
      {isOpen && (
        <div
          id={id}
          role="listbox"
          aria-label="Commands"
          {...OVERLAY}
          className="absolute right-4 bottom-full left-4 z-20 mb-px max-h-[min(280px,40dvh)] overflow-y-auto rounded-t-md border border-line-strong border-b-0 bg-ground py-1 shadow-xl sm:right-6 sm:left-[78px]"
        >
          {found.map((command, place) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
            <div
              key={command.name}
              id={`${id}-${place}`}
              role="option"
              tabIndex={-1}
              aria-selected={place === at}
              // The field keeps the focus.
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => complete(command)}
              className={clsx(
                'flex cursor-default items-baseline gap-3 px-2 py-1 text-xs',
                place === at ? 'bg-raised' : 'hover:bg-raised/60',
              )}
            >
              <span className="max-w-[60%] shrink-0 truncate font-mono text-ink">
                /<Name text={command.name} layout="tool" />
              </span>
              <span dir="auto" className="min-w-0 flex-1 truncate text-ink-3">
                <Words text={command.description} />
              </span>
            </div>
          ))}
        </div>
      )}
    </>
  );
}

/** Commands whose names start with the text, then those that contain it. */
function commandsWith(commands: readonly NamedCommand[], typed: string): NamedCommand[] {
  const query = typed.toLowerCase();
  const names = commands.map((command) => ({ command, at: command.name.toLowerCase().indexOf(query) }));
  const [first, others] = [names.filter(({ at }) => at === 0), names.filter(({ at }) => at > 0)];
  return [...first, ...others].slice(0, MAX_COMMANDS).map(({ command }) => command);
}
