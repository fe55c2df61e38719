import { inProcessServer } from '../support/server-target';
import { describeInsightsContract } from './insights-contract';

describeInsightsContract('in this process', inProcessServer);
