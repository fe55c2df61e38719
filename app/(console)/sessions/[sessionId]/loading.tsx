export default function LoadingSession() {
  return (
    <main aria-busy="true" className="px-6 py-4 text-ink-3">
      Loading the session…
    </main>
  );
}
