'use client';

import type { CredentialSummary, Me, OwnSignIns } from '@interlude/protocol/access';
import { clsx } from 'clsx';
import { useRef } from 'react';
import { deleteJson, fetchJson } from '@/components/live/fetch-json';
import { SignOut } from '@/components/live/sign-out';
import { useList } from '@/components/live/use-list';
import { Ago } from '@/components/ui/clock';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { Moment } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { Words } from '@/components/ui/name';
import { useAct } from './confirm-action';
import { Section } from './fact-table';
import { ROLE_CAN, ROLE_WORD } from './role-labels';
import { MARK, useMark } from './setting';
import { spanInWords, Until } from './until';

const REFRESH_MS = 10_000;
const SHOWN = 5;

export function YouPage({ me, initial, hint }: { me: Me; initial: OwnSignIns; hint: string }) {
  const { list: { signIns } = initial, update } = useList<OwnSignIns>({
    key: ['access', 'own'],
    read: (_, signal) => fetchJson('/me/sign-ins', signal),
    initialData: initial,
    refetchInterval: REFRESH_MS,
    refetchOnMount: 'always',
  });
  const { isSending, failure, act } = useAct();
  const endOthers = () =>
    act(async () => {
      const remaining = await deleteJson<OwnSignIns>('/me/sign-ins');
      update(() => remaining);
    });
  const here = signIns.find(({ id }) => id === me.credentialId);
  const others = signIns.filter(({ id }) => id !== me.credentialId);
  const isAdmin = me.role === 'admin';
  const top = useRef<HTMLDivElement>(null);
  const isMarked = useMark('sign-out', top);
  return (
    <div className="space-y-9">
      <div id="sign-out" ref={top} tabIndex={-1} className={clsx('focus-quiet', isMarked && MARK)}>
        <h2 className="font-medium text-xl [overflow-wrap:anywhere]">
          <bdi>
            <Words text={me.name} />
          </bdi>
        </h2>
        <p className="mt-1 max-w-prose text-ink-2">
          <span className="text-ink">{ROLE_WORD[me.role]}</span>: can {ROLE_CAN[me.role]}.{!isAdmin && ` ${hint}`}
        </p>
        {here !== undefined && <Since signIn={here} />}
        <div className="mt-4">
          <SignOut
            label="Sign out"
            className="h-8 rounded-md border border-line-strong px-4 pointer-coarse:h-11 hover:border-ink"
          />
        </div>
      </div>
      <Section
        id="elsewhere"
        title="Signed in elsewhere"
        count={others.length}
        about={
          others.length === 0
            ? 'You aren’t signed in anywhere else.'
            : `In ${plural(others.length, 'other browser')}. Signing out takes effect within two seconds.`
        }
      >
        {others.length > 0 && (
          <>
            <ul className="max-w-prose">
              {others.slice(0, SHOWN).map(({ id, createdAt, lastUsedAt }) => (
                <li key={id} className="flex flex-wrap gap-x-5 border-line border-b py-1.5 text-ink-2 text-xs">
                  <span>
                    since <Moment at={createdAt} />
                  </span>
                  <span className="text-ink-3">
                    last used <Ago at={lastUsedAt} inWords />
                  </span>
                </li>
              ))}
            </ul>
            {others.length > SHOWN && <p className="py-1.5 text-ink-3 text-xs">… and {others.length - SHOWN} more</p>}
            <ConfirmButton
              of="others"
              onPress={() => void endOthers()}
              disabled={isSending}
              className="mt-3 min-h-6 underline-offset-2 pointer-coarse:min-h-11"
              looks={['text-ink-2 decoration-line-strong hover:text-ink', 'text-failed']}
            >
              {(isPressed) =>
                isSending
                  ? 'Signing out…'
                  : isPressed
                    ? `End ${plural(others.length, 'sign-in')}?`
                    : 'Sign out everywhere else'
              }
            </ConfirmButton>
          </>
        )}
        <p role="alert" className="text-failed text-xs">
          {failure !== null && `Could not sign out: ${failure}`}
        </p>
      </Section>
    </div>
  );
}

function Since({ signIn }: { signIn: CredentialSummary }) {
  const { createdAt, lastUsedAt, idleUntil, expiresAt } = signIn;
  const idleMs = idleUntil === null ? Number.POSITIVE_INFINITY : idleUntil - lastUsedAt;
  // An idle limit beyond the expiry has no effect.
  const isIdleShorter = idleMs < (expiresAt ?? Number.POSITIVE_INFINITY) - createdAt;
  return (
    <p className="mt-1 text-ink-3 text-xs">
      Signed in since <Moment at={createdAt} />.{(isIdleShorter || expiresAt !== null) && ' Ends '}
      {isIdleShorter && `after ${spanInWords(idleMs)} without use${expiresAt === null ? '.' : ', or '}`}
      {expiresAt !== null && (
        <>
          <Until at={expiresAt} />.
        </>
      )}
    </p>
  );
}
