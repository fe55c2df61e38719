import { Link } from '@/components/ui/link';

export default function NoSuchSession() {
  return (
    <main className="px-6 py-10">
      <h1 className="font-medium text-lg">No such session</h1>
      <p className="mt-1 max-w-prose text-ink-2">
        This server has no session with this id. It appears when its agent sends the first event. If the agent has sent
        events, check that its runner is connected to this server.
      </p>
      <Link href="/" className="mt-4 inline-block underline underline-offset-2">
        All sessions
      </Link>
    </main>
  );
}
