'use client';

import { ArrowUp, X } from 'lucide-react';
import { type KeyboardEvent, useEffect, useId, useImperativeHandle, useRef, useState } from 'react';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import type { AgentSummary, SessionSummary } from '@/lib/protocol/read-models';
import { ComposerStatus } from './composer-status';
import { InterruptButton, interruptEffect, interruptKey, useInterrupt } from './interrupt';
import { useDraft } from './use-draft';
import { useFocusKey } from './use-focus-key';
import { useGrowing } from './use-growing';
import { useSentHistory } from './use-sent-history';

/** The second Esc has to follow the first within this. */
const ESCAPE_TWICE_MS = 1_500;

export interface ComposerHandle {
  /** The next message answers this one. */
  replyTo: (messageId: string) => void;
}

interface ComposerProps {
  session: SessionSummary;
  /** Null until it is known. */
  agent: AgentSummary | null;
  /** Why nobody can be written to any more, else null. */
  ended: string | null;
  sent: () => string[];
  quoteOf: (messageId: string) => string | null;
  onSend: (text: string, replyTo: string | null) => void;
  handle: React.Ref<ComposerHandle>;
}

/** Where people write to the agent. Enter sends; what is begun stays until it is sent. */
export function Composer({ session, agent, ended, sent, quoteOf, onSend, handle }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const { draft, change } = useDraft(session.id, field);
  const history = useSentHistory(sent);
  const interrupt = useInterrupt(session.openTurnId);
  const [escaped, setEscaped] = useState<{ at: number; turnId: string | null } | null>(null);
  const statusId = useId();
  useGrowing(field, draft.text);
  useFocusKey(field);
  useImperativeHandle(handle, () => ({
    replyTo(messageId) {
      change({ replyTo: messageId });
      field.current?.focus();
    },
  }));
  useEffect(() => {
    if (escaped === null) return;
    const timer = setTimeout(() => setEscaped(null), ESCAPE_TWICE_MS);
    return () => clearTimeout(timer);
  }, [escaped]);

  const isEmpty = draft.text.trim() === '';
  const isEscaped = escaped !== null && escaped.turnId === session.openTurnId;
  const send = () => {
    if (isEmpty || ended !== null) return;
    onSend(draft.text, draft.replyTo);
    change({ text: '', replyTo: null });
  };
  const pressEscape = () => {
    if (interrupt === null || interrupt.isAsked) field.current?.blur();
    // Whoever presses it in a hurry means the turn before, with the first Esc as with the second.
    else if (!interrupt.isMeant()) return;
    // The second Esc is meant for the turn that the first one was meant for.
    else if (!isEscaped) setEscaped({ at: Date.now(), turnId: session.openTurnId });
    else {
      setEscaped(null);
      interrupt.ask();
    }
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // While an input method composes, its keys are its own. (Safari's last Enter comes after; its code is 229.)
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === 'Escape') {
      event.preventDefault();
      if (!event.repeat) pressEscape();
    } else if (!event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      const text = history.move(event.key, draft.text);
      if (text === null) return;
      event.preventDefault();
      change({ text });
    }
  };
  const effect = interruptEffect(agent, session.runningTaskCount);
  const quote = draft.replyTo === null ? null : (quoteOf(draft.replyTo) ?? 'a message further up');

  return (
    <form
      aria-label="Composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      className="shrink-0 border-line border-t focus-within:border-accent"
    >
      <div className="mx-auto max-w-[960px] px-4 pt-2 pb-1.5 sm:pr-6 sm:pl-[86px]">
        {quote !== null && (
          <p className="flex items-center gap-2 pb-1 text-ink-3 text-xs">
            <span className="min-w-0 truncate">
              In reply to “<Name text={quote} />”
            </span>
            <button
              type="button"
              aria-label="Don’t reply to it"
              onClick={() => change({ replyTo: null })}
              className="hit shrink-0 hover:text-ink"
            >
              <X size={13} aria-hidden="true" />
            </button>
          </p>
        )}
        <div className="flex items-end gap-2">
          <textarea
            ref={field}
            rows={1}
            value={draft.text}
            disabled={ended !== null}
            aria-label={`Message to ${nameText(session.agentId)}`}
            aria-describedby={statusId}
            placeholder={ended === null ? `Message to ${nameText(session.agentId)}` : undefined}
            onChange={(event) => change({ text: event.target.value })}
            onKeyDown={onKeyDown}
            className="max-h-[40dvh] min-h-7 min-w-0 flex-1 resize-none bg-transparent py-[3px] text-md outline-none [overflow-wrap:anywhere] placeholder:text-ink-3 placeholder-shown:overflow-hidden placeholder-shown:text-ellipsis placeholder-shown:whitespace-nowrap disabled:cursor-not-allowed"
          />
          {interrupt !== null && (
            <InterruptButton
              turnId={interrupt.turnId}
              isAsked={interrupt.isAsked}
              describedBy={statusId}
              effect={effect}
              onPress={interrupt.ask}
            />
          )}
          <button
            type="submit"
            aria-label="Send"
            title="Send (Enter)"
            disabled={isEmpty || ended !== null}
            className="grid size-7 shrink-0 place-items-center rounded-full bg-ink text-ground hover:bg-ink-2 disabled:cursor-default disabled:bg-raised disabled:text-ink-3"
          >
            <ArrowUp size={15} aria-hidden="true" />
          </button>
        </div>
        <p id={statusId} data-action={interruptKey(session.openTurnId ?? '')} className="min-h-4 text-2xs text-ink-3">
          <ComposerStatus
            ended={ended}
            failure={interrupt?.failure ?? null}
            escapeHint={!isEscaped ? null : `Esc once more to interrupt. ${effect}`}
            effect={interrupt !== null && session.runningTaskCount > 0 ? effect : null}
            agent={agent}
          />
        </p>
      </div>
    </form>
  );
}
