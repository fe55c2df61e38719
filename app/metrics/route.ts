export { DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT } from '@/app/api/[[...path]]/route';
export const dynamic = 'force-dynamic';
