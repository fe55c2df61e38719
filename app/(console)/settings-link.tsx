import { CircleUser } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';

/** Link to the settings, which include sign-out. */
export function SettingsLink() {
  return (
    <Link
      href="/settings"
      title="Settings and sign-out"
      prefetch={false}
      className="hit grid size-5 place-items-center text-ink-3 hover:text-ink"
    >
      <Icon of={CircleUser} size={15} strokeWidth={1.75} />
      <span className="sr-only">Settings and sign-out</span>
    </Link>
  );
}
