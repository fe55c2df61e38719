'use client';

import type { AuditEntry } from '@interlude/protocol/access';
import type { Role } from '@interlude/protocol/scope';
import { API_BASE } from '@interlude/protocol/version';
import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import type { ReactNode } from 'react';
import { Moment } from '@/components/ui/day';
import { Icon } from '@/components/ui/icon';
import { Name, Phrase, Words } from '@/components/ui/name';
import type { AuditField } from './audit-filter';
import { resultWord } from './audit-filter';
import { ROLE_WORD } from './role-labels';

export function AuditRow({ entry, onOnly }: { entry: AuditEntry; onOnly: (field: AuditField, value: string) => void }) {
  const { number, at, actor, action, agentId, sessionId, target, result, times } = entry;
  const isDone = result === 'done';
  const about = sessionId ?? agentId ?? target.replace(API_BASE, '');
  return (
    <li className="border-line border-b">
      <details className="group/entry">
        <summary className="grid cursor-pointer list-none grid-cols-[minmax(0,1fr)_auto_12px] items-baseline gap-x-4 list-row-line rounded-sm text-xs hover:bg-raised/60 @3xl:grid-cols-[40px_104px_minmax(0,2fr)_minmax(0,2fr)_minmax(0,3fr)_minmax(0,2fr)_12px] [&::-webkit-details-marker]:hidden">
          <span className="tabular text-ink-3 @max-3xl:hidden">{number}</span>
          <Moment at={at} seconds className="whitespace-nowrap text-ink-3 @max-3xl:order-2 @max-3xl:text-2xs" />
          <span className="truncate font-medium @max-3xl:order-1">
            <bdi>
              <Words text={actor} />
            </bdi>
          </span>
          <span className="truncate @max-3xl:order-3">{action}</span>
          <span className="truncate text-ink-2 @max-3xl:order-5 @max-3xl:col-span-2">
            <Name text={about} />
          </span>
          <span
            className={clsx('truncate @max-3xl:order-4 @max-3xl:text-right', isDone ? 'text-ink-3' : 'text-failed')}
          >
            {resultWord(result)}
            {times > 1 && `, ${times} times`}
          </span>
          <Icon
            of={ChevronRight}
            size={12}
            className="self-center text-ink-3 group-open/entry:rotate-90 @max-3xl:order-2"
          />
        </summary>
        <Details entry={entry} onOnly={onOnly} />
      </details>
    </li>
  );
}

function Details({ entry, onOnly }: { entry: AuditEntry; onOnly: (field: AuditField, value: string) => void }) {
  const { number, actor, actorKind, role, credentialId, agentId, sessionId } = entry;
  const { target, digest, origin, times, hash } = entry;
  return (
    <dl className="grid grid-cols-[6rem_minmax(0,1fr)] @xl:grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 pt-1 pb-3 text-xs @3xl:pl-14">
      <Fact name="Entry">{number}</Fact>
      <Fact name="Who" only={() => onOnly('actor', actor)}>
        <Phrase text={actor} /> ({actorKind}, {(ROLE_WORD[role as Role] ?? role).toLowerCase()})
      </Fact>
      <Fact name="Credential" only={() => onOnly('credential', credentialId)}>
        <code>{credentialId}</code>
      </Fact>
      {agentId !== null && (
        <Fact name="Agent" only={() => onOnly('agent', agentId)}>
          <Name text={agentId} />
        </Fact>
      )}
      {sessionId !== null && (
        <Fact name="Session" only={() => onOnly('session', sessionId)}>
          <Name text={sessionId} />
        </Fact>
      )}
      {times > 1 && <Fact name="Times">{times} (newest shown)</Fact>}
      <Fact name="Request">
        <code>
          <Name text={target} />
        </code>
      </Fact>
      {origin !== '' && (
        <Fact name="From">
          <Name text={origin} />
        </Fact>
      )}
      {digest !== '' && (
        <Fact name="Body digest">
          <code>{digest}</code>
        </Fact>
      )}
      <Fact name="Hash">
        <code>{hash}</code>
      </Fact>
    </dl>
  );
}

function Fact({ name, only, children }: { name: string; only?: () => void; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-3">{name}</dt>
      <dd className="flex min-w-0 flex-wrap items-baseline gap-x-3 text-ink-2 [overflow-wrap:anywhere]">
        <span className="min-w-0">{children}</span>
        {only !== undefined && (
          <button
            type="button"
            aria-label={`Show only this ${name.toLowerCase() === 'who' ? 'person or program' : name.toLowerCase()}`}
            onClick={only}
            className="text-2xs text-ink-3 underline decoration-line-strong underline-offset-2 hover:text-ink"
          >
            only this
          </button>
        )}
      </dd>
    </>
  );
}
