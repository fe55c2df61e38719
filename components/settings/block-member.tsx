import type { MemberSummary } from '@interlude/protocol/access';
import { quoted } from '@/components/ui/verbatim';
import { SureButton } from './sure-button';

/** Keeps somebody out, whatever the provider says, and ends all that they are signed in with; or lets them in again. */
export function BlockMember({
  member,
  onChange,
}: {
  member: MemberSummary;
  onChange: (blocked: boolean) => Promise<unknown>;
}) {
  const isBlocked = member.blockedAt !== null;
  return (
    <SureButton
      of={`${member.id} ${isBlocked}`}
      word={isBlocked ? 'Unblock' : 'Block'}
      name={quoted(member.name)}
      onSure={() => onChange(!isBlocked)}
    />
  );
}
