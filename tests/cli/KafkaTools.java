import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/** Kafka's tools as a server: a line of base64 in, main class and arguments; one out: exit code, stdout, stderr. */
class KafkaTools {
    static final class Exited extends RuntimeException {
        final int code;

        Exited(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    public static void main(String[] unused) throws Exception {
        Exit.setExitProcedure((code, message) -> { throw new Exited(code); });
        Exit.setHaltProcedure((code, message) -> { throw new Exited(code); });
        PrintStream answers = System.out;
        // Scala keeps the stream that it finds first, so both stay the same for good and are emptied in between.
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(Base64.getDecoder().decode(words[i].substring(1)), StandardCharsets.UTF_8);
            }
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            answers.println(code + " =" + base64(out) + " =" + base64(err));
            answers.flush();
        }
    }

    /** The exit code; what a tool throws ends it with 1 and its text on stderr, as it ends a JVM of its own. */
    private static int run(String tool, String[] arguments) throws ReflectiveOperationException {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Exited exited) {
                return exited.code;
            }
            System.err.println("Exception in thread \"main\" " + error.getCause());
            return 1;
        }
    }

    /** What was written, and the stream is empty again. */
    private static String base64(ByteArrayOutputStream written) {
        String text = Base64.getEncoder().encodeToString(written.toByteArray());
        written.reset();
        return text;
    }
}
