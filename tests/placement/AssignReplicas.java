import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;

/**
 * Kafka's AdminUtils as a server. A line in: partitions, replication factor, start, seed, brokers as
 * id or id=rack; with a negative start, start and shift are drawn by a Random of that seed. A line out: start, shift,
 * the replicas of each partition.
 */
class AssignReplicas {
    public static void main(String[] unused) throws Exception {
        Field random = AdminUtils.class.getDeclaredField("RAND");
        random.setAccessible(true);
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            int start = Integer.parseInt(words[2]);
            long seed = Long.parseLong(words[3]);
            List<BrokerMetadata> brokers = new ArrayList<>();
            for (int i = 4; i < words.length; i++) {
                String[] told = words[i].split("=");
                brokers.add(new BrokerMetadata(Integer.parseInt(told[0]), Optional.ofNullable(told.length > 1 ? told[1] : null)));
            }
            ((Random) random.get(null)).setSeed(seed);
            var found = new TreeMap<>(AdminUtils.assignReplicasToBrokers(
                brokers, Integer.parseInt(words[0]), Integer.parseInt(words[1]), start, 0));
            Random drawn = new Random(seed);
            int begin = start >= 0 ? start : drawn.nextInt(brokers.size());
            int shift = start >= 0 ? start : drawn.nextInt(brokers.size());
            StringBuilder answer = new StringBuilder(begin + " " + shift);
            found.forEach((partition, replicas) ->
                answer.append(' ').append(partition).append(':').append(replicas.toString().replaceAll("[\\[\\] ]", "")));
            System.out.println(answer);
            System.out.flush();
        }
    }
}
