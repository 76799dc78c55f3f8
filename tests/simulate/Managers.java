// Kafka's own quota managers under a clock that the test sets: one load a line, one answer a record.
//   produce|fetch|request|strict|permissive|topics SAMPLES SAMPLE_SECONDS BOUND  then TIME:VALUE …
// A record prints the throttle time in ms; a rejected one prints it with a leading x. A fetch that is throttled is taken
// back, as KafkaApis does; its answer ends with what one fetch may take. The records of "topics" belong to one request, and
// its answer ends with the throttle time of the response, at the time of the last word.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.util.Optional;
import kafka.server.ClientRequestQuotaManager;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

public class Managers {
    static long now = 0;

    static final Time TIME = (Time) Proxy.newProxyInstance(Managers.class.getClassLoader(), new Class<?>[] {Time.class},
        (proxy, method, arguments) -> switch (method.getName()) {
            case "milliseconds", "hiResClockMs" -> now;
            case "nanoseconds" -> now * 1_000_000;
            default -> throw new UnsupportedOperationException(method.getName());
        });

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
        System.exit(0);
    }

    static String answer(String[] words) throws Exception {
        now = Long.parseLong(words[4].split(":")[0]);
        ClientQuotaManagerConfig config =
            new ClientQuotaManagerConfig(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
        try (Metrics metrics = new Metrics(new MetricConfig(), java.util.List.of(), TIME)) {
            ClientQuotaManager manager = switch (words[0]) {
                case "fetch" -> new ClientQuotaManager(config, metrics, QuotaType.FETCH, TIME, "t");
                case "produce" -> new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, TIME, "t");
                case "request" -> new ClientRequestQuotaManager(config, metrics, TIME, "t", Optional.empty());
                default -> new ControllerMutationQuotaManager(config, metrics, TIME, "t", Optional.empty());
            };
            manager.updateQuota(Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY), Optional.empty(),
                Optional.of(Quota.upperBound(Double.parseDouble(words[3]))));
            Session session = new Session(new KafkaPrincipal("User", "u"), InetAddress.getLoopbackAddress());
            ControllerMutationQuota request = words[0].equals("topics")
                ? ((ControllerMutationQuotaManager) manager).newStrictQuotaFor(session, "c") : null;
            StringBuilder out = new StringBuilder();
            for (int i = 4; i < words.length; i++) {
                String[] parts = words[i].split(":");
                now = Long.parseLong(parts[0]);
                double value = Double.parseDouble(parts[1]);
                if (request == null) {
                    out.append(record(words[0], manager, session, value)).append(' ');
                } else if (i < words.length - 1) {
                    out.append(record(request, value)).append(' ');
                } else {
                    out.append(request.throttleTime());
                }
            }
            if (words[0].equals("fetch")) {
                out.append(Math.max(1, (long) manager.maxValueInQuotaWindow(session, "c")));
            }
            manager.shutdown();
            return out.toString().trim();
        }
    }

    static String record(String kind, ClientQuotaManager manager, Session session, double value) {
        if (!(manager instanceof ControllerMutationQuotaManager)) {
            int throttle = manager.recordAndGetThrottleTimeMs(session, "c", value, now);
            if (kind.equals("fetch") && throttle > 0) {
                manager.unrecordQuotaSensor(session, "c", value, now);
            }
            return String.valueOf(throttle);
        }
        ControllerMutationQuotaManager mutations = (ControllerMutationQuotaManager) manager;
        return record(kind.equals("strict")
            ? mutations.newStrictQuotaFor(session, "c") : mutations.newPermissiveQuotaFor(session, "c"), value);
    }

    static String record(ControllerMutationQuota quota, double value) {
        try {
            quota.record(value);
            return String.valueOf(quota.throttleTime());
        } catch (ThrottlingQuotaExceededException e) {
            return "x" + e.throttleTimeMs();
        }
    }
}
