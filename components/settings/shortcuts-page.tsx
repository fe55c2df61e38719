'use client';

import { clsx } from 'clsx';
import { type KeyboardEvent, useState } from 'react';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { plural } from '@/components/ui/duration';
import {
  BINDINGS_KEY,
  type Bindings,
  bindingsOf,
  boundKeys,
  isCharacter,
  keyLabel,
} from '@/components/ui/shortcuts/bindings';
import { Keys, SHORTCUT_IDS, SHORTCUT_LABELS, ShortcutList } from '@/components/ui/shortcuts/shortcut-dialog';
import { keyName, SHORTCUTS, type ShortcutId } from '@/components/ui/shortcuts/use-shortcuts';
import { useStoredAnywhere } from '@/components/ui/use-stored-anywhere';
import { Section } from './fact-table';
import { Setting } from './setting';

const BUTTON = 'h-8 shrink-0 rounded-md border border-line-strong px-3 hover:bg-raised pointer-coarse:h-11';
const LINK = 'text-ink-3 text-xs underline decoration-line-strong underline-offset-2 hover:text-ink';

/** Places whose shortcuts act at the same time. */
const TOGETHER = [
  ['Transcript', 'Writing to the agent', 'On a request or its inbox row'],
  ['Inbox', 'Inbox and agents', 'On a request or its inbox row'],
  ['Agents', 'Inbox and agents'],
];

function doMeet(one: string, other: string): boolean {
  const isAnywhere = one === 'Everywhere' || other === 'Everywhere';
  return isAnywhere || one === other || TOGETHER.some((places) => places.includes(one) && places.includes(other));
}

/** The shortcut that already has this key where the other one acts, or null. */
export function conflictOf(id: ShortcutId, key: string, { keys }: Bindings): ShortcutId | null {
  const place = SHORTCUT_LABELS[id][0];
  const isTaken = (other: ShortcutId) =>
    boundKeys(other, SHORTCUTS[other].keys, { isLettersOff: false, keys }).some(
      // By default, `g` acts in a log although it starts `g i`.
      (taken) => taken === key || (taken.startsWith(`${key} `) && ownKey(id) !== key),
    );
  return (
    SHORTCUT_IDS.find((other) => other !== id && doMeet(place, SHORTCUT_LABELS[other][0]) && isTaken(other)) ?? null
  );
}

/** The character that a shortcut can exchange for another key; null for arrows, Esc, sequences and digits. */
export function ownKey(id: ShortcutId): string | null {
  const [own, ...others] = SHORTCUTS[id].keys.filter((key) => key.length === 1);
  return own === undefined || others.length > 0 ? null : own;
}

/** All shortcuts, with buttons to change the keys. */
export function ShortcutsPage() {
  const [stored, store] = useStoredAnywhere(BINDINGS_KEY);
  const bindings = bindingsOf(stored);
  const keep = (change: Partial<Bindings>) => store(JSON.stringify({ ...bindings, ...change }));
  const changed = Object.keys(bindings.keys).length;
  return (
    <Section
      title="Shortcuts"
      about="To change a key, press its button, then the new key. Keys you change apply to you in this browser."
    >
      <Setting
        id="letters"
        name="Single-key shortcuts"
        about="Turn them off if you use speech input or often press keys by accident. Keys with Ctrl or Alt keep working."
      >
        <button
          type="button"
          role="switch"
          aria-checked={!bindings.isLettersOff}
          aria-labelledby="letters-name"
          onClick={() => keep({ isLettersOff: !bindings.isLettersOff })}
          className={BUTTON}
        >
          {bindings.isLettersOff ? 'Off' : 'On'}
        </button>
      </Setting>
      <Setting
        id="keys"
        name="Keyboard shortcuts"
        about={changed === 0 ? 'All keys are the defaults.' : `${changed} changed.`}
      >
        <ConfirmButton
          of="keys"
          disabled={changed === 0}
          onPress={() => keep({ keys: {} })}
          className={clsx(BUTTON, 'decoration-transparent aria-disabled:text-ink-3')}
          looks={['', 'font-medium text-failed']}
        >
          {(isPressed) => (isPressed ? `Press again to reset ${plural(changed, 'shortcut')}` : 'Reset all')}
        </ConfirmButton>
      </Setting>
      <div className="mt-2 gap-x-10 @4xl:columns-2 [&>section]:mb-6 [&>section]:break-inside-avoid">
        <ShortcutList
          keysOf={(id) =>
            ownKey(id) === null ? (
              <Keys id={id} />
            ) : (
              <KeyButton id={id} bindings={bindings} onKeys={(keys) => keep({ keys })} />
            )
          }
        />
      </div>
    </Section>
  );
}

const MODIFIERS = ['Shift', 'Control', 'Alt', 'Meta', 'AltGraph', 'CapsLock', 'Dead', 'Process'];

/** The shortcut's key, as a button that takes another one. */
function KeyButton(props: { id: ShortcutId; bindings: Bindings; onKeys: (keys: Bindings['keys']) => void }) {
  const { id, bindings, onKeys } = props;
  const [isWaiting, setWaiting] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const [, what] = SHORTCUT_LABELS[id];
  const usual = ownKey(id) as string;
  const current = bindings.keys[id] ?? usual;
  const bind = (key: string) => {
    const other = conflictOf(id, key, bindings);
    if (other !== null) {
      const [place, taken] = SHORTCUT_LABELS[other];
      return setRefusal(`${keyLabel(key)} is already “${taken}” (${place}).`);
    }
    setRefusal(null);
    setWaiting(false);
    const { [id]: _, ...others } = bindings.keys;
    onKeys(key === usual ? others : { ...others, [id]: key });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!isWaiting || event.key === 'Tab' || event.nativeEvent.isComposing || MODIFIERS.includes(event.key)) return;
    event.preventDefault();
    if (event.key === 'Escape') {
      setWaiting(false);
      setRefusal(null);
    } else if (/^([^ ]|F\d+)$/u.test(event.key)) bind(keyName(event));
    else setRefusal(`${keyLabel(event.key)} can’t be a shortcut. Press another key.`);
  };
  return (
    <>
      <span role="alert" className="text-failed text-xs">
        {refusal}
      </span>
      {current !== usual && !isWaiting && (
        <button type="button" aria-label={`Reset “${what}”`} onClick={() => bind(usual)} className={LINK}>
          Reset
        </button>
      )}
      <button
        type="button"
        aria-label={isWaiting ? `Press the new key for “${what}”` : `${what}: ${keyLabel(current)}. Change`}
        onClick={() => setWaiting(!isWaiting)}
        onBlur={() => {
          setWaiting(false);
          setRefusal(null);
        }}
        onKeyDown={onKeyDown}
        className={clsx(
          'min-h-6 min-w-8 rounded border px-1.5 text-xs pointer-coarse:min-h-11',
          isWaiting ? 'border-accent text-ink' : 'border-line-strong text-ink-2 hover:bg-raised',
          bindings.isLettersOff && isCharacter(current) && 'text-ink-3 line-through',
        )}
      >
        {isWaiting ? 'Press a key…' : <kbd>{keyLabel(current)}</kbd>}
      </button>
      {SHORTCUTS[id].keys
        .filter((key) => !isCharacter(key))
        .map((key) => (
          <kbd key={key} className="text-ink-2 text-xs">
            {keyLabel(key)}
          </kbd>
        ))}
    </>
  );
}
