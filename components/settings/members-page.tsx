'use client';

import type { MemberList, MemberSummary } from '@interlude/protocol/access';
import { Ago } from '@/components/ui/clock';
import { Moment } from '@/components/ui/day';
import { Words } from '@/components/ui/name';
import { BlockMember } from './block-member';
import { FactTable } from './fact-table';
import { MemberRolePick } from './member-role-pick';
import { Section } from './section';
import { useMembers } from './use-members';

const WIDTHS = '@3xl:grid-cols-[minmax(0,3fr)_minmax(0,2.4fr)_minmax(0,2.4fr)_88px_96px]';

/** People who come by the identity provider, and what they may. */
export function MembersPage({
  initial,
  ownId,
  provider,
}: {
  initial: MemberList;
  ownId: string;
  provider: string | null;
}) {
  const { members, hasMore, error, change } = useMembers(initial);
  if (members.length === 0) return <NoMembers provider={provider} />;
  return (
    <Section
      title="Members"
      count={members.length}
      about={
        <>
          Who has signed in with {provider ?? 'an identity provider'}. Their groups there make their role, unless an
          admin gives another. Changes hold within two seconds, also for who is signed in. Tokens that somebody made go
          on: revoke them under Access.
        </>
      }
    >
      {error !== null && (
        <p role="alert" className="pb-2 text-failed text-xs">
          This may be old: it could not be looked up again. {error.message}
        </p>
      )}
      <FactTable<MemberSummary>
        label="Members"
        rows={members}
        widths={WIDTHS}
        columns={[
          { name: 'Name', cell: (member) => <Who member={member} isYou={member.id === ownId} /> },
          {
            name: 'Role',
            cell: (member) => <MemberRolePick member={member} onChange={(role) => change(member.id, { role })} />,
          },
          { name: 'Standing', cell: (member) => <Standing member={member} /> },
          {
            name: 'Last sign-in',
            before: 'last sign-in',
            cell: ({ lastSignInAt }) => <Ago at={lastSignInAt} />,
          },
          {
            name: 'Block',
            className: 'text-right',
            cell: (member) => <BlockMember member={member} onChange={(blocked) => change(member.id, { blocked })} />,
          },
        ]}
      />
      {hasMore && <p className="mt-2 text-ink-3 text-xs">There are more: the first {members.length} are listed.</p>}
    </Section>
  );
}

function Who({ member, isYou }: { member: MemberSummary; isYou: boolean }) {
  return (
    <>
      <bdi>
        <Words text={member.name} />
      </bdi>
      {isYou && <span className="font-normal text-ink-3 text-xs"> · you</span>}
      <span className="block font-normal text-2xs text-ink-3">
        {member.email !== null && <Words text={member.email} />}
      </span>
    </>
  );
}

/** Whether they are in, or come in at all. */
function Standing({ member }: { member: MemberSummary }) {
  const { blockedAt, signInCount } = member;
  if (blockedAt !== null) {
    return (
      <span className="text-failed">
        blocked since <Moment at={blockedAt} />
      </span>
    );
  }
  return signInCount === 0 ? 'not signed in' : 'signed in';
}

function NoMembers({ provider }: { provider: string | null }) {
  return (
    <Section title="Members">
      <div className="max-w-prose space-y-3 text-ink-2">
        {provider === null ? (
          <>
            <p>
              No identity provider is set, so everybody signs in on this machine, as its admin. For a team, let people
              sign in with the account that they have, in the roles that their groups give them.
            </p>
            <p>
              Register Interlude with your provider (Keycloak, Entra ID, Okta, Google, GitLab, …), then start it with{' '}
              <code className="text-ink">INTERLUDE_OIDC_ISSUER</code>,{' '}
              <code className="text-ink">INTERLUDE_OIDC_CLIENT_ID</code> and{' '}
              <code className="text-ink">INTERLUDE_OIDC_CLIENT_SECRET</code>. The file{' '}
              <code className="text-ink">docs/sign-in.md</code> has the steps.
            </p>
          </>
        ) : (
          <p>
            People can sign in with <span className="text-ink">{provider}</span>, and nobody has yet. Whoever does is
            listed here, with the role that their groups give them.
          </p>
        )}
      </div>
    </Section>
  );
}
