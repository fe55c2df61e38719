'use client';

import type { NewToken } from '@interlude/protocol/access';
import { Plus } from 'lucide';
import { type ReactNode, useRef, useState } from 'react';
import { postJson } from '@/components/live/fetch-json';
import { Icon } from '@/components/ui/icon';
import { ROLE_MAY } from './role-words';
import {
  EMPTY_TOKEN,
  EXPIRIES,
  type Expiry,
  REACHES,
  TOKEN_ROLES,
  type TokenWish,
  tokenRequest,
  withRole,
} from './token-wish';
import { useAct } from './use-act';

/** What a new token is to be for. Folded until somebody wants one. */
export function TokenForm({ onMade }: { onMade: (made: NewToken) => void }) {
  const [wish, setWish] = useState<TokenWish | null>(null);
  const { isSending, failure, act } = useAct();
  const opener = useRef<HTMLButtonElement>(null);
  const close = () => {
    setWish(null);
    // The form is gone, and the focus with it, unless the reader has moved it meanwhile.
    requestAnimationFrame(() => document.activeElement === document.body && opener.current?.focus());
  };
  if (wish === null) {
    return (
      <button
        ref={opener}
        type="button"
        onClick={() => setWish(EMPTY_TOKEN)}
        className="mb-3 flex h-8 items-center gap-1.5 rounded-md border border-line-strong px-3 hover:bg-raised"
      >
        <Icon of={Plus} size={14} />
        Create a token
      </button>
    );
  }
  const set = (fields: Partial<TokenWish>) => setWish({ ...wish, ...fields });
  const reaches = REACHES[wish.role];
  const { reach } = wish;
  return (
    <form
      aria-label="New token"
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        close();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        void act(async () => onMade(await postJson<NewToken>('/tokens', tokenRequest(wish, Date.now()))));
      }}
      className="mb-5 grid max-w-xl gap-4 rounded-md border border-line-strong p-4"
    >
      <Field label="Role" hint={`It may ${ROLE_MAY[wish.role]}.`}>
        <select
          // biome-ignore lint/a11y/noAutofocus: it was asked for on a press, and this is where it begins
          autoFocus
          value={wish.role}
          onChange={(event) => setWish(withRole(wish, event.target.value as TokenWish['role']))}
          className={SELECT}
        >
          {TOKEN_ROLES.map(({ role, word }) => (
            <option key={role} value={role}>
              {word}
            </option>
          ))}
        </select>
      </Field>
      {reaches.length > 1 && (
        <Field label="Reaches">
          <select
            value={reach}
            onChange={(event) => set({ reach: event.target.value as TokenWish['reach'] })}
            className={SELECT}
          >
            {reaches.map((each) => (
              <option key={each} value={each}>
                {REACH_WORD[each]}
              </option>
            ))}
          </select>
        </Field>
      )}
      {reach !== 'everything' && (
        <Field label={reach === 'agent' ? 'Id of the agent' : 'How their ids begin'}>
          <input
            required
            value={wish.agent}
            onChange={(event) => set({ agent: event.target.value })}
            spellCheck={false}
            autoCapitalize="none"
            autoComplete="off"
            className={INPUT}
          />
        </Field>
      )}
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Name, to know it by">
          <input
            value={wish.name}
            onChange={(event) => set({ name: event.target.value })}
            maxLength={100}
            placeholder="as its role and agent say"
            autoComplete="off"
            className={INPUT}
          />
        </Field>
        <Field label="Expires">
          <select
            value={wish.expiry}
            onChange={(event) => set({ expiry: event.target.value as Expiry })}
            className={SELECT}
          >
            {EXPIRIES.map(({ expiry, word }) => (
              <option key={expiry} value={expiry}>
                {word}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <button
          type="submit"
          aria-disabled={isSending}
          className="h-8 rounded-md bg-ink px-4 text-ground hover:bg-ink-2"
        >
          {isSending ? 'Creating…' : 'Create token'}
        </button>
        <button type="button" onClick={close} className="min-h-6 text-ink-2 hover:text-ink">
          Cancel
        </button>
        <span role="alert" className="min-w-0 flex-1 text-failed text-xs">
          {failure}
        </span>
      </div>
    </form>
  );
}

const REACH_WORD: Record<TokenWish['reach'], string> = {
  agent: 'One agent',
  prefix: 'Agents whose ids begin alike',
  everything: 'Every agent',
};

const SELECT = 'h-8 w-full rounded-md border border-line-strong bg-ground px-2';
const INPUT = `${SELECT} placeholder:text-ink-3`;

function Field({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: it is what it is given
    <label className="block">
      <span className="block pb-1 text-2xs text-ink-3">{label}</span>
      {children}
      {hint !== undefined && <span className="mt-1 block text-ink-3 text-xs">{hint}</span>}
    </label>
  );
}
