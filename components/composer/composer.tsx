'use client';

import type { Attachment } from '@interlude/protocol/field-schemas';
import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { ArrowUp, X } from 'lucide';
import { type KeyboardEvent, type RefObject, useId, useImperativeHandle, useLayoutEffect, useRef } from 'react';
import { useRefusal } from '@/components/live/refusals';
import { Icon } from '@/components/ui/icon';
import { Words } from '@/components/ui/name';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { isPress, useShortcuts, useTitleWithKey } from '@/components/ui/shortcuts/use-shortcuts';
import { quoted } from '@/components/ui/verbatim';
import { ComposerStatus } from './composer-status';
import type { OutgoingMessage } from './draft-store';
import { useDraft } from './draft-store';
import { InterruptButton, interruptEffect, interruptKey, useInterrupt } from './interrupt';
import { useSentHistory } from './sent-history';
import { messageText } from './upload-list';
import { AttachButton, useAttachments } from './use-attachments';

const chipsCode = new CodeOnDemand(async () => (await import('./attachment-chips')).AttachmentChips);
const namesCode = new CodeOnDemand(async () => (await import('./command-names')).CommandNames);

export interface ComposerHandle {
  /** Makes the next message a reply to this one. */
  replyTo: (messageId: string) => void;
  /** Adds a message that was not sent to the end of the draft. */
  restoreMessage: (message: Pick<OutgoingMessage, 'text' | 'replyTo' | 'attachments'>) => void;
}

export interface ComposerProps {
  session: SessionSummary;
  /** Null until it is loaded. */
  agent: AgentSummary | null;
  /** Reason the session accepts no more messages; null if it accepts them. */
  ended: string | null;
  sent: () => string[];
  quoteOf: (messageId: string) => string | null;
  onSend: (text: string, replyTo: string | null, attachments: readonly Attachment[]) => void;
  /** Called on Esc, to move the focus. */
  onLeave: () => void;
  handle: React.Ref<ComposerHandle>;
}

/** The message field. Enter sends; the draft is stored until then. */
export function Composer({ session, agent, ended, sent, quoteOf, onSend, onLeave, handle }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const { draft, draftNow, change } = useDraft(session.id, field);
  const send = () => {
    const { text, replyTo } = draftNow();
    const isEmpty = text.trim() === '' && list.uploads.length === 0;
    if (isEmpty || ended !== null || !list.mayBeSent()) return;
    const { attachments } = list;
    onSend(messageText(text, attachments), replyTo, attachments);
    change({ text: '', replyTo: null, attachments: undefined });
    list.clear();
  };
  const { accepts, list, uploads, isOver, status, handlers } = useAttachments({
    ...{ sessionId: session.id, ended, draftNow, change, send },
  });
  const history = useSentHistory(sent);
  const interrupt = useInterrupt(session.openTurnId);
  const noInterrupt = useRefusal('interrupt');
  const statusId = useId();
  const withKey = useTitleWithKey('message.send');
  useGrowing(field, draft.text);
  useShortcuts({
    'message.write': () => field.current?.focus(),
    'turn.interrupt': interrupt && (() => interrupt.press()),
  });
  useImperativeHandle(handle, () => ({
    replyTo(messageId) {
      change({ replyTo: messageId });
      field.current?.focus();
    },
    restoreMessage({ text, replyTo, attachments = [] }) {
      const existing = draftNow();
      // A message without text was sent with the names of its attachments.
      const words = text === messageText('', attachments) ? '' : text;
      const parts = [existing.text, words].filter((part) => part.trim() !== '');
      change({ text: parts.join('\n\n'), replyTo: existing.replyTo ?? replyTo });
      list.restore(attachments);
      field.current?.focus();
    },
  }));

  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // Ignores keys of an input method. Safari sends the last Enter after the composition, with key code 229.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (isPress('message.send', event)) {
      event.preventDefault();
      send();
    } else if (isPress('message.leave', event)) {
      event.preventDefault();
      // Blurs even if `onLeave` moves the focus nowhere.
      event.currentTarget.blur();
      onLeave();
    } else if (!event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      const text = history.move(event.key, draft.text);
      if (text === null) return;
      event.preventDefault();
      change({ text });
    }
  };
  const effect = interruptEffect(agent, session.runningTaskCount);
  const quote = draft.replyTo === null ? null : (quoteOf(draft.replyTo) ?? 'an earlier message');

  return (
    <form
      aria-label="Composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      {...handlers}
      className={clsx(
        'shrink-0 border-t focus-within:border-accent',
        isOver ? 'border-accent bg-raised' : 'border-line',
      )}
    >
      <div className="session-column relative pt-2 pb-1.5">
        {quote !== null && <ReplyQuote quote={quote} onRemove={() => change({ replyTo: null })} />}
        {/^\/\S*$/.test(draft.text) && agent?.status?.commands !== undefined && (
          <OnDemand
            code={namesCode}
            name="The list of commands"
            props={{ status: agent.status, typed: draft.text, field, onTake: (text: string) => change({ text }) }}
          />
        )}
        {uploads.length > 0 && (
          <OnDemand
            code={chipsCode}
            name="The list of attachments"
            props={{ sessionId: session.id, uploads, list, onRemoved: () => field.current?.focus() }}
          />
        )}
        <div className="flex items-end gap-1 sm:gap-2">
          {ended === null && <AttachButton accepts={accepts} onAttach={(files) => list.add(files)} />}
          <textarea
            ref={field}
            dir="auto"
            rows={1}
            value={draft.text}
            disabled={ended !== null}
            aria-label={`Message to ${quoted(session.agentId)}`}
            aria-describedby={statusId}
            placeholder={ended === null ? 'Message' : undefined}
            onChange={(event) => change({ text: event.target.value })}
            onKeyDown={onKeyDown}
            className="max-h-[40dvh] min-h-7 min-w-0 flex-1 resize-none bg-transparent pointer-coarse:py-[11px] py-[3px] text-md outline-none [overflow-wrap:anywhere] placeholder:text-ink-3 disabled:cursor-not-allowed"
          />
          {interrupt !== null && (
            <InterruptButton
              turnId={interrupt.turnId}
              isRequested={interrupt.isRequested}
              describedBy={statusId}
              effect={effect}
              onPress={interrupt.request}
            />
          )}
          <button
            type="submit"
            aria-label="Send"
            title={withKey('Send')}
            disabled={(draft.text.trim() === '' && uploads.length === 0) || ended !== null}
            className="grid size-7 shrink-0 place-items-center rounded-full bg-ink text-ground hover:bg-ink-2 disabled:cursor-default disabled:bg-raised disabled:text-ink-3"
          >
            <Icon of={ArrowUp} size={15} />
          </button>
        </div>
        <p id={statusId} data-action={interruptKey(session.openTurnId ?? '')} className="min-h-4 text-2xs text-ink-3">
          <ComposerStatus
            ended={ended}
            attaching={status}
            failure={interrupt?.failure ?? null}
            effect={interrupt !== null && session.runningTaskCount > 0 ? effect : null}
            noInterrupt={session.openTurnId === null ? null : (noInterrupt?.reason ?? null)}
            session={session}
            agent={agent}
          />
        </p>
      </div>
    </form>
  );
}

/** The message that the draft replies to. */
function ReplyQuote({ quote, onRemove }: { quote: string; onRemove: () => void }) {
  return (
    <p className="flex items-center gap-2 pb-1 text-ink-3 text-xs">
      <span className="min-w-0 truncate">
        In reply to “
        <bdi>
          <Words text={quote} />
        </bdi>
        ”
      </span>
      <button type="button" aria-label="Cancel reply" onClick={onRemove} className="hit shrink-0 hover:text-ink">
        <Icon of={X} size={13} />
      </button>
    </p>
  );
}

/** Grows a textarea with its text, up to its `max-height`. */
function useGrowing(fieldRef: RefObject<HTMLTextAreaElement | null>, text: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height depends on the text
  useLayoutEffect(() => {
    const element = fieldRef.current;
    if (element === null) return;
    element.style.height = 'auto';
    element.style.height = `${element.scrollHeight}px`;
  }, [fieldRef, text]);
}
