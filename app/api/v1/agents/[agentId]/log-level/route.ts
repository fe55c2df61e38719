import { putLogLevel } from '@/lib/commands/put-log-level';
import { getLogLevel } from '@/lib/queries/read-routes';
import { mount } from '../../../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ GET: getLogLevel, PUT: putLogLevel });
