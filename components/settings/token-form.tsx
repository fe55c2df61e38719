'use client';

import type { CredentialSummary, NewToken, NewTokenRequest } from '@interlude/protocol/access';
import { BASE_PATH } from '@interlude/protocol/base-path.mjs';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { Plus } from 'lucide';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { postJson } from '@/components/live/fetch-json';
import { useHydrated } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import { Icon } from '@/components/ui/icon';
import { useAct } from './confirm-action';
import { ROLE_CAN } from './role-labels';

type TokenRole = NewTokenRequest['role'];
type Reach = 'agent' | 'prefix' | 'everything';
type Expiry = 'never' | '30' | '90' | '365';

/** The form’s fields. */
interface TokenDraft {
  role: TokenRole;
  reach: Reach;
  /** An agent id, or a prefix of ids. */
  agent: string;
  name: string;
  expiry: Expiry;
}

export const EMPTY_TOKEN: TokenDraft = { role: 'runner', reach: 'agent', agent: '', name: '', expiry: 'never' };

/** Most common first. */
export const TOKEN_ROLES: readonly { role: TokenRole; word: string }[] = [
  { role: 'runner', word: 'Runner: sends records for its agents' },
  { role: 'viewer', word: 'Viewer: read-only' },
  { role: 'operator', word: 'Operator: reads and writes to agents' },
  { role: 'issuer', word: 'Issuer: creates tokens for embeds' },
  { role: 'admin', word: 'Admin: everything' },
];

/** Scopes that a role allows, most common first. */
export const ROLE_SCOPES: Record<TokenRole, readonly [Reach, ...Reach[]]> = {
  runner: ['agent', 'prefix'],
  viewer: ['everything', 'agent', 'prefix'],
  operator: ['everything', 'agent', 'prefix'],
  issuer: ['everything'],
  admin: ['everything'],
};

function withRole(draft: TokenDraft, role: TokenRole): TokenDraft {
  return { ...draft, role, reach: ROLE_SCOPES[role][0] };
}

const EXPIRIES: readonly { expiry: Expiry; word: string }[] = [
  { expiry: 'never', word: 'Never' },
  { expiry: '30', word: 'In 30 days' },
  { expiry: '90', word: 'In 90 days' },
  { expiry: '365', word: 'In a year' },
];

const DAY_MS = 24 * 60 * 60_000;

export function tokenRequest({ role, reach, agent, name, expiry }: TokenDraft, now: number): NewTokenRequest {
  return {
    role,
    ...(reach === 'agent' ? { agent: agent.trim() } : reach === 'prefix' ? { agentPrefix: agent.trim() } : {}),
    ...(name.trim() === '' ? {} : { name: name.trim() }),
    ...(expiry === 'never' ? {} : { expiresAt: now + Number(expiry) * DAY_MS }),
  };
}

/** Creates a token. Starts as a button. */
export function TokenForm({ onMade }: { onMade: (made: NewToken) => void }) {
  const [draft, setDraft] = useState<TokenDraft | null>(null);
  const { isSending, failure, act } = useAct();
  const opener = useRef<HTMLButtonElement>(null);
  const close = () => {
    setDraft(null);
    // Removing the form loses the focus unless the reader has moved it.
    requestAnimationFrame(() => document.activeElement === document.body && opener.current?.focus());
  };
  if (draft === null) {
    return (
      <button
        ref={opener}
        type="button"
        onClick={() => setDraft(EMPTY_TOKEN)}
        className="mb-3 flex h-8 pointer-coarse:h-11 items-center gap-1.5 rounded-md border border-line-strong px-3 hover:bg-raised"
      >
        <Icon of={Plus} size={14} />
        Create a token
      </button>
    );
  }
  const set = (fields: Partial<TokenDraft>) => setDraft({ ...draft, ...fields });
  const reaches = ROLE_SCOPES[draft.role];
  const { reach } = draft;
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
        void act(async () => onMade(await postJson<NewToken>('/tokens', tokenRequest(draft, Date.now()))));
      }}
      className="mb-5 grid max-w-xl gap-4 rounded-md border border-line-strong p-4"
    >
      <Field label="Role" hint={`It can ${ROLE_CAN[draft.role]}.`}>
        <select
          // biome-ignore lint/a11y/noAutofocus: the reader opened the form with a press, and this is its first field
          autoFocus
          value={draft.role}
          onChange={(event) => setDraft(withRole(draft, event.target.value as TokenDraft['role']))}
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
            onChange={(event) => set({ reach: event.target.value as TokenDraft['reach'] })}
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
        <Field label={reach === 'agent' ? 'Agent id' : 'Agent id prefix'}>
          <input
            dir="auto"
            required
            value={draft.agent}
            onChange={(event) => set({ agent: event.target.value })}
            spellCheck={false}
            autoCapitalize="none"
            autoComplete="off"
            className={INPUT}
          />
        </Field>
      )}
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Name">
          <input
            dir="auto"
            value={draft.name}
            onChange={(event) => set({ name: event.target.value })}
            maxLength={100}
            placeholder="defaults to the role and agent"
            autoComplete="off"
            className={INPUT}
          />
        </Field>
        <Field label="Expires">
          <select
            value={draft.expiry}
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
          className="h-8 pointer-coarse:h-11 rounded-md bg-ink px-4 text-ground hover:bg-ink-2"
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

const REACH_WORD: Record<TokenDraft['reach'], string> = {
  agent: 'One agent',
  prefix: 'Agents by id prefix',
  everything: 'Every agent',
};

const SELECT = 'h-8 pointer-coarse:h-11 w-full rounded-md border border-line-strong bg-ground px-2';
const INPUT = `${SELECT} placeholder:text-ink-3`;

function Field({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the children are the control
    <label className="block">
      <span className="block pb-1 text-2xs text-ink-3">{label}</span>
      {children}
      {hint !== undefined && <span className="mt-1 block text-ink-3 text-xs">{hint}</span>}
    </label>
  );
}

/** A new token, shown once, with the commands that use it. */
export function NewTokenNotice({ made, onClose }: { made: NewToken; onClose: () => void }) {
  const { token, credential } = made;
  const isKnown = useHydrated();
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.focus(), []);
  const steps = tokenCommands(credential, isKnown ? location.origin + BASE_PATH : '');
  return (
    <section
      ref={box}
      tabIndex={-1}
      aria-label="The new token"
      className="mb-5 grid max-w-2xl gap-3 rounded-md border border-line-strong p-4 focus-quiet"
    >
      <p>
        <span className="font-medium">This is your token.</span>{' '}
        <span className="text-ink-2">You won’t see this token again. If you lose it, create a new one.</span>
      </p>
      <p className="flex items-start gap-3 rounded-md bg-raised px-3 py-2">
        <code className="min-w-0 flex-1 text-xs [overflow-wrap:anywhere]">{token}</code>
        <CopyButton label="Copy token" text={() => token} withLabel className="mt-px shrink-0" />
      </p>
      {steps.map(({ what, command }) => (
        <div key={command}>
          <p className="pb-1 text-ink-2 text-xs">{what}</p>
          <p className="flex items-start gap-3 rounded-md bg-sunken px-3 py-2">
            <code className="min-w-0 flex-1 whitespace-pre-wrap text-xs [overflow-wrap:anywhere]">{command}</code>
            <CopyButton label="Copy command" text={() => command} className="mt-px shrink-0" />
          </p>
        </div>
      ))}
      <button
        type="button"
        onClick={onClose}
        className="h-8 pointer-coarse:h-11 w-fit rounded-md border border-line-strong px-4 hover:bg-raised"
      >
        I have it
      </button>
    </section>
  );
}

/**
 * Commands that use a new token. They read it from a file, because other users can read arguments in the list of
 * processes, and the shell keeps them in its history.
 */
export function tokenCommands(
  { role, scope }: Pick<CredentialSummary, 'role' | 'scope'>,
  origin: string,
): { what: string; command: string }[] {
  const agent = scope.kind === 'agents' ? (scope.ids[0] ?? null) : null;
  const file = `${(agent ?? role).replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, 60) || role}.token`;
  const keep = {
    what: 'Save the token to a file that only you can read: run this command, paste the token, then press Enter and Ctrl-D.',
    command: `install -m 600 /dev/stdin ${file}`,
  };
  if (role === 'runner') {
    const as = agent === null ? '' : ` --agent ${shellWord(agent)}`;
    const run = `npx interlude runner claude${as} \\\n  --url ${origin} \\\n  --token-file ${file}`;
    return [keep, { what: 'Start a runner with this token, for Claude Code or another agent:', command: run }];
  }
  const path = role === 'issuer' ? 'me' : role === 'admin' ? 'credentials' : 'sessions';
  const call = `(printf 'Authorization: Bearer '; cat ${file}) | curl -H @- ${origin}/api/v1/${path}`;
  return [keep, { what: 'Call the API with this token:', command: call }];
}
