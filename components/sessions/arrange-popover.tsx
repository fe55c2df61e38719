'use client';

import type { Arrange, CommandResponse, WakeRule, WakeRuleResponse } from '@interlude/protocol/commands';
import { MAX_SESSION_NAME } from '@interlude/protocol/limits';
import type { ArrangementResponse, SessionSummary } from '@interlude/protocol/read-models';
import { isSeen, listedStateOf, seenStateOf } from '@interlude/protocol/session-predicates';
import { clsx } from 'clsx';
import { type FormEvent, type KeyboardEvent, type RefObject, useEffect, useRef, useState } from 'react';
import { putJson } from '@/components/live/fetch-json';
import { usePost } from '@/components/live/idempotent-post';
import { useSupportsCommand } from '@/components/live/refusals';
import { useLiveness } from '@/components/ui/liveness';
import { ButtonPopover } from '@/components/ui/popover';
import { sessionTitle } from './session-labels';

const ACTION = 'h-7 rounded border border-line px-2.5 hover:border-ink disabled:opacity-50';
const ENTRY =
  'flex min-h-8 w-full items-center px-3 text-left text-xs -outline-offset-2 hover:bg-raised disabled:opacity-50';

export function ArrangePopover(props: {
  session: SessionSummary;
  button: RefObject<HTMLElement | null>;
  onClose: () => void;
}) {
  const { session, button, onClose } = props;
  return (
    <ButtonPopover
      label="Manage this session"
      button={button}
      onClose={onClose}
      align="end"
      className="w-[min(280px,calc(100vw-24px))] py-1"
    >
      <ArrangeSession session={session} onDone={onClose} />
    </ButtonPopover>
  );
}

/** Renames, pins, archives or ends a session, marks its failure as seen and sets its wake rule. */
export function ArrangeSession({ session, onDone }: { session: SessionSummary; onDone: () => void }) {
  const { name, pinnedAt, archivedAt } = session.arrangement;
  const [text, setText] = useState(name ?? sessionTitle(session));
  const [isRenaming, setRenaming] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const [isAsking, setAsking] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const canWake = useSupportsCommand('wake-rule.set');
  const supportsEnd = useSupportsCommand('session.end');
  const { stopped, isAway } = useLiveness();
  const canEnd = supportsEnd && stopped === null && !isAway && session.state !== 'exited';
  const listedState = listedStateOf(session);
  const hasFailed = listedState === 'failed' || listedState === 'lost';

  useEffect(() => {
    if (!isRenaming) return;
    field.current?.focus();
    field.current?.select();
  }, [isRenaming]);

  const arrange = async (change: Arrange) => {
    setAsking(true);
    setError(null);
    try {
      await putJson<ArrangementResponse>(`/sessions/${encodeURIComponent(session.id)}/arrangement`, change);
      onDone();
    } catch (failure) {
      setError((failure as Error).message);
    } finally {
      setAsking(false);
    }
  };
  const rename = (event: FormEvent) => {
    event.preventDefault();
    void arrange({ name: text.trim() === '' || text === session.title ? null : text });
  };

  const entries: [label: string, change: Arrange][] = [
    [pinnedAt === null ? 'Pin' : 'Unpin', { pinned: pinnedAt === null }],
    [archivedAt === null ? 'Archive' : 'Unarchive', { archived: archivedAt === null }],
  ];
  if (hasFailed) {
    const seen = isSeen(session);
    entries.push([seen ? 'Mark as unseen' : 'Mark as seen', { seenState: seen ? null : seenStateOf(session) }]);
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys move between its buttons
    <div onKeyDown={moveFocus}>
      {isRenaming ? (
        <form onSubmit={rename} className="flex items-end gap-2 px-3 py-1.5 text-xs">
          <label className="flex min-w-0 flex-1 flex-col gap-1">
            <span className="text-ink-3">Name</span>
            <input
              ref={field}
              dir="auto"
              value={text}
              maxLength={MAX_SESSION_NAME}
              onChange={(event) => setText(event.target.value)}
              className="h-7 min-w-0 rounded border border-line bg-transparent px-2 focus:border-accent focus:outline-none"
            />
          </label>
          <button type="submit" disabled={isAsking} className={ACTION}>
            Rename
          </button>
        </form>
      ) : (
        <button type="button" onClick={() => setRenaming(true)} className={ENTRY}>
          Rename…
        </button>
      )}
      {entries.map(([label, change]) => (
        <button key={label} type="button" disabled={isAsking} onClick={() => void arrange(change)} className={ENTRY}>
          {label}
        </button>
      ))}
      {canWake && <WakeSwitch session={session} />}
      {canEnd && <EndSession sessionId={session.id} onEnded={onDone} />}
      {error !== null && (
        <p role="alert" className="px-3 pb-1.5 text-failed text-xs">
          {error}
        </p>
      )}
    </div>
  );
}

/** Moves the focus between the entries with the arrow keys. */
function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const entries = [...event.currentTarget.querySelectorAll<HTMLElement>('button:not(:disabled)')];
  const at = entries.indexOf(event.target as HTMLElement);
  if (step === undefined || at < 0) return;
  event.preventDefault();
  entries.at((at + step) % entries.length)?.focus();
}

/** Toggles waking the agent when a background command ends. Offered for agents that get no notification. */
export function WakeSwitch({ session }: { session: Pick<SessionSummary, 'id' | 'wakeRule'> }) {
  const { id, wakeRule } = session;
  /** The requested rule, until the session's row changes. */
  const [requested, setRequested] = useState<{ when: WakeRule; before: WakeRule | null } | null>(null);
  const [error, setError] = useState<string | null>(null);
  if (requested !== null && requested.before !== wakeRule) setRequested(null);
  const isOn = (requested?.when ?? wakeRule) === 'command-ended';
  const set = async (when: WakeRule) => {
    setRequested({ when, before: wakeRule });
    setError(null);
    try {
      await putJson<WakeRuleResponse>(`/sessions/${encodeURIComponent(id)}/wake-rule`, { when });
    } catch (failure) {
      setRequested(null);
      setError((failure as Error).message);
    }
  };
  return (
    <div className="mt-1 border-line border-t px-3 pt-2 pb-1.5 text-xs">
      <button
        type="button"
        role="switch"
        aria-checked={isOn}
        onClick={() => void set(isOn ? 'never' : 'command-ended')}
        className="flex w-full items-center gap-2.5 text-left hover:text-ink"
      >
        <span
          aria-hidden="true"
          className={clsx(
            'flex h-4 w-7 shrink-0 items-center rounded-full border px-[2px] transition-colors',
            isOn ? 'justify-end border-ink bg-ink' : 'border-line-strong',
          )}
        >
          <span className={clsx('size-2.5 rounded-full', isOn ? 'bg-ground' : 'bg-ink-3')} />
        </span>
        Wake the agent when a background command ends
      </button>
      <p className="mt-1 pl-[38px] text-2xs text-ink-3">
        The agent isn’t notified when a command ends. Interlude can start a turn with the result.
      </p>
      {error !== null && (
        <p role="alert" className="mt-1 pl-[38px] text-failed">
          {error}
        </p>
      )}
    </div>
  );
}

/** Ends the session with its agent and runner, after a confirmation in place. */
export function EndSession({ sessionId, onEnded }: { sessionId: string; onEnded: () => void }) {
  const [isSure, setSure] = useState<boolean | null>(null);
  const [state, post] = usePost<CommandResponse>();
  const button = useRef<HTMLButtonElement>(null);
  // The pressed button is gone; its replacement takes the focus.
  useEffect(() => {
    if (isSure !== null) button.current?.focus();
  }, [isSure]);
  useEffect(() => {
    if (state.kind === 'done') onEnded();
  }, [state, onEnded]);
  const isSending = state.kind === 'sending';
  return (
    <div className="mt-1 border-line border-t pt-1 text-xs">
      {isSure === true ? (
        <div className="px-3 pt-1 pb-1.5">
          <p className="mb-1.5">
            This stops the agent and its runner. Anything still running after 5 seconds is killed.
          </p>
          <div className="flex flex-wrap gap-2">
            <button
              ref={button}
              type="button"
              disabled={isSending}
              onClick={() => void post(`/sessions/${encodeURIComponent(sessionId)}/end`)}
              className={`${ACTION} text-failed`}
            >
              End it now
            </button>
            <button type="button" disabled={isSending} onClick={() => setSure(false)} className={ACTION}>
              Keep it
            </button>
          </div>
        </div>
      ) : (
        <button ref={button} type="button" onClick={() => setSure(true)} className={ENTRY}>
          End session…
        </button>
      )}
      {state.kind === 'failed' && (
        <p role="alert" className="px-3 pb-1.5 text-failed">
          {state.reason}
        </p>
      )}
    </div>
  );
}
