'use client';

import type { ChangeMemberRequest, MemberList, MemberSummary } from '@interlude/protocol/access';
import { MEMBER_ROLES, type MemberRole } from '@interlude/protocol/scope';
import { fetchJson, putJson } from '@/components/live/fetch-json';
import { List } from '@/components/live/list';
import { useList } from '@/components/live/use-list';
import { Ago } from '@/components/ui/clock';
import { Moment } from '@/components/ui/day';
import { Phrase, Words } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';
import { ConfirmAction, useAct } from './confirm-action';
import { FactTable, Section } from './fact-table';
import { ROLE_WORD } from './role-labels';

const REFRESH_MS = 10_000;
const WIDTHS = '@3xl:grid-cols-[minmax(0,3fr)_minmax(0,2.4fr)_minmax(0,2.4fr)_88px_96px]';

/** People who sign in with the identity provider, and their roles. */
export function MembersPage(props: { initial: MemberList; ownId: string; provider: string | null }) {
  const { initial, ownId, provider } = props;
  const {
    list: { members, hasMore } = initial,
    update,
    ...state
  } = useList<MemberList>({
    key: ['access', 'members'],
    read: (_, signal) => fetchJson('/members', signal),
    initialData: initial,
    refetchInterval: REFRESH_MS,
    refetchOnMount: 'always',
  });
  const change = async (id: string, wanted: ChangeMemberRequest) => {
    const { member } = await putJson<{ member: MemberSummary }>(`/members/${encodeURIComponent(id)}`, wanted);
    update((list) => ({ ...list, members: list.members.map((one) => (one.id === id ? member : one)) }));
  };
  const isEmpty = members.length === 0;
  const about = `People who have signed in with ${provider ?? 'an identity provider'}. Their groups there set their role, unless an admin sets another one here. Changes take effect within two seconds, even for people who are signed in. Blocking a member doesn’t revoke the tokens they created: revoke those under Access.`;
  return (
    <Section
      id="members"
      title="Members"
      count={isEmpty ? undefined : members.length}
      about={isEmpty ? undefined : about}
    >
      <List rows={members} what="members" state={state} empty={<NoMembers provider={provider} />}>
        {() => (
          <FactTable<MemberSummary>
            label="Members"
            rows={members}
            widths={WIDTHS}
            columns={[
              { name: 'Name', cell: (member) => <MemberName member={member} isYou={member.id === ownId} /> },
              {
                name: 'Role',
                cell: (member) => <RolePick member={member} onChange={(role) => change(member.id, { role })} />,
              },
              { name: 'Status', cell: (member) => <MemberStatus member={member} /> },
              {
                name: 'Last sign-in',
                before: 'last sign-in',
                cell: ({ lastSignInAt }) => <Ago at={lastSignInAt} inWords />,
              },
              {
                name: 'Block',
                className: 'text-right',
                cell: ({ id, name, blockedAt }) => (
                  <ConfirmAction
                    of={`${id} ${blockedAt !== null}`}
                    word={blockedAt === null ? 'Block' : 'Unblock'}
                    name={quoted(name)}
                    onConfirm={() => change(id, { blocked: blockedAt === null })}
                  />
                ),
              },
            ]}
          />
        )}
      </List>
      {hasMore && <p className="mt-2 text-ink-3 text-xs">Only the first {members.length} members are listed.</p>}
    </Section>
  );
}

function MemberName({ member, isYou }: { member: MemberSummary; isYou: boolean }) {
  return (
    <>
      <bdi>
        <Words text={member.name} />
      </bdi>
      {isYou && <span className="font-normal text-ink-3 text-xs"> · you</span>}
      <span className="block font-normal text-2xs text-ink-3">
        {member.email !== null && <Phrase text={member.email} />}
      </span>
    </>
  );
}

/** The role that the member’s groups give, or one that an admin sets. */
function RolePick(props: { member: MemberSummary; onChange: (role: MemberRole | null) => Promise<unknown> }) {
  const { member, onChange } = props;
  const { isSending, failure, act } = useAct();
  return (
    <>
      <select
        aria-label={`Role of ${quoted(member.name)}`}
        value={member.givenRole ?? ''}
        disabled={isSending}
        onChange={({ target }) => void act(() => onChange(target.value === '' ? null : (target.value as MemberRole)))}
        className="h-7 pointer-coarse:h-11 @max-3xl:mt-1 max-w-full rounded-md border border-line bg-ground px-1.5 text-ink hover:border-line-strong"
      >
        <option value="">{ROLE_WORD[member.groupRole]}, from groups</option>
        {MEMBER_ROLES.map((role) => (
          <option key={role} value={role}>
            {ROLE_WORD[role]}, set here
          </option>
        ))}
      </select>
      <span role="alert" className="block max-w-[40ch] text-2xs text-failed">
        {failure}
      </span>
    </>
  );
}

function MemberStatus({ member: { blockedAt, signInCount } }: { member: MemberSummary }) {
  if (blockedAt === null) return signInCount === 0 ? 'not signed in' : 'signed in';
  return (
    <span className="text-failed">
      blocked since <Moment at={blockedAt} />
    </span>
  );
}

function NoMembers({ provider }: { provider: string | null }) {
  return (
    <div className="max-w-prose space-y-3 text-ink-2">
      {provider === null ? (
        <>
          <p>
            No identity provider is configured, so everyone who signs in on this machine is an admin. Configure one for
            a team: people sign in with the account they already have, and their groups set their roles.
          </p>
          <p>
            Register Interlude with your provider (Keycloak, Entra ID, Okta, Google, GitLab, …), then start it with{' '}
            <code className="text-ink">INTERLUDE_OIDC_ISSUER</code>,{' '}
            <code className="text-ink">INTERLUDE_OIDC_CLIENT_ID</code> and{' '}
            <code className="text-ink">INTERLUDE_OIDC_CLIENT_SECRET</code>. See{' '}
            <code className="text-ink">docs/sign-in.md</code> for the steps.
          </p>
        </>
      ) : (
        <p>
          No one has signed in with <span className="text-ink">{provider}</span> yet. People appear here after their
          first sign-in, with the role from their groups.
        </p>
      )}
    </div>
  );
}
