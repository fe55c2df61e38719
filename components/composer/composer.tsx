'use client';

import { clsx } from 'clsx';
import { ArrowUp, X } from 'lucide';
import { type KeyboardEvent, useId, useImperativeHandle, useRef } from 'react';
import { useRefusal } from '@/components/live/refusals';
import { Icon } from '@/components/ui/icon';
import { Words } from '@/components/ui/name';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { isPress } from '@/components/ui/shortcuts/shortcut-list';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { nameText } from '@/components/ui/verbatim';
import type { Attachment } from '@/lib/protocol/attachments';
import type { AgentSummary, SessionSummary } from '@/lib/protocol/read-models';
import { AttachButton } from './attach-button';
import { ComposerStatus } from './composer-status';
import { InterruptButton, interruptEffect, interruptKey, useInterrupt } from './interrupt';
import { textWith, type UploadList } from './upload-list';
import { useAttaching } from './use-attaching';
import { useDraft } from './use-draft';
import { useGrowing } from './use-growing';
import { useSentHistory } from './use-sent-history';

const chipsCode = new CodeOnDemand(async () => (await import('./attachment-chips')).AttachmentChips);
const namesCode = new CodeOnDemand(async () => (await import('./command-names')).CommandNames);

export interface ComposerHandle {
  /** The next message answers this one. */
  replyTo: (messageId: string) => void;
}

export interface ComposerProps {
  session: SessionSummary;
  /** Null until it is known. */
  agent: AgentSummary | null;
  /** Why nobody can be written to any more, else null. */
  ended: string | null;
  sent: () => string[];
  quoteOf: (messageId: string) => string | null;
  onSend: (text: string, replyTo: string | null, attachments: readonly Attachment[]) => void;
  /** The writer is done for now: takes the focus. */
  onLeave: () => void;
  handle: React.Ref<ComposerHandle>;
}

/** Where people write to the agent. Enter sends; what is begun stays until it is sent. */
export function Composer({ session, agent, ended, sent, quoteOf, onSend, onLeave, handle }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const { draft, change } = useDraft(session.id, field);
  const sendNow = (list: UploadList) => {
    const { attachments } = list;
    onSend(textWith(draft.text, attachments), draft.replyTo, attachments);
    change({ text: '', replyTo: null, attachments: undefined });
    list.clear();
  };
  const keep = (attachments: readonly Attachment[]) =>
    change({ attachments: attachments.length === 0 ? undefined : attachments });
  const { takes, list, uploads, isOver, places } = useAttaching(session.id, keep, sendNow);
  const history = useSentHistory(sent);
  const interrupt = useInterrupt(session.openTurnId);
  const noInterrupt = useRefusal('interrupt');
  const statusId = useId();
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
  }));

  const isEmpty = draft.text.trim() === '' && uploads.length === 0;
  const send = () => {
    if (!isEmpty && ended === null && list.mayBeSent()) sendNow(list);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // While an input method composes, its keys are its own. (Safari's last Enter comes after; its code is 229.)
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (isPress('message.send', event)) {
      event.preventDefault();
      send();
    } else if (isPress('message.leave', event)) {
      event.preventDefault();
      // Where there is nowhere to go, it leaves all the same.
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
  const quote = draft.replyTo === null ? null : (quoteOf(draft.replyTo) ?? 'a message further up');

  return (
    <form
      aria-label="Composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      {...places}
      className={clsx(
        'shrink-0 border-t focus-within:border-accent',
        isOver ? 'border-accent bg-raised' : 'border-line',
      )}
    >
      <div className="relative mx-auto max-w-[960px] px-4 pt-2 pb-1.5 sm:pr-6 sm:pl-[86px]">
        {quote !== null && (
          <p className="flex items-center gap-2 pb-1 text-ink-3 text-xs">
            <span className="min-w-0 truncate">
              In reply to “
              <bdi>
                <Words text={quote} />
              </bdi>
              ”
            </span>
            <button
              type="button"
              aria-label="Don’t reply to it"
              onClick={() => change({ replyTo: null })}
              className="hit shrink-0 hover:text-ink"
            >
              <Icon of={X} size={13} />
            </button>
          </p>
        )}
        {/^\/\S*$/.test(draft.text) && agent?.status?.commands !== undefined && (
          <OnDemand
            code={namesCode}
            name="The commands"
            props={{ status: agent.status, typed: draft.text, field, onTake: (text: string) => change({ text }) }}
          />
        )}
        {uploads.length > 0 && (
          <OnDemand
            code={chipsCode}
            name="What is attached"
            props={{ sessionId: session.id, uploads, list, onRemoved: () => field.current?.focus() }}
          />
        )}
        <div className="flex items-end gap-1 sm:gap-2">
          {ended === null && <AttachButton takes={takes} onAttach={(files) => list.add(files)} />}
          <textarea
            ref={field}
            dir="auto"
            rows={1}
            value={draft.text}
            disabled={ended !== null}
            aria-label={`Message to ${nameText(session.agentId)}`}
            aria-describedby={statusId}
            placeholder={ended === null ? 'Message' : undefined}
            onChange={(event) => change({ text: event.target.value })}
            onKeyDown={onKeyDown}
            className="max-h-[40dvh] min-h-7 min-w-0 flex-1 resize-none bg-transparent py-[3px] text-md outline-none [overflow-wrap:anywhere] placeholder:text-ink-3 disabled:cursor-not-allowed"
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
            <Icon of={ArrowUp} size={15} />
          </button>
        </div>
        <p id={statusId} data-action={interruptKey(session.openTurnId ?? '')} className="min-h-4 text-2xs text-ink-3">
          <ComposerStatus
            ended={ended}
            attaching={uploads.length === 0 ? null : list.words}
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
